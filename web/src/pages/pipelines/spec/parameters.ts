import { listOf, part, parts, textOf } from "./ir";

export type Kind = "text" | "integer" | "number" | "boolean" | "list" | "structure";

const KINDS: Record<string, Kind> = {
  STRING: "text",
  NUMBER_INTEGER: "integer",
  NUMBER_DOUBLE: "number",
  BOOLEAN: "boolean",
  LIST: "list",
  STRUCT: "structure",
};

/** A parameter of a pipeline, as the form shows it. */
export interface Parameter {
  name: string;
  kind: Kind;
  description: string;
  /** Undefined: it has none. */
  initial: unknown;
  required: boolean;
  /** If there are any, the only values that are allowed. */
  choices: unknown[];
}

/** The parameters of a pipeline. Statuses of tasks are filled in by the server. */
export function readParameters(spec: unknown): Parameter[] {
  return parts(spec, "root", "inputDefinitions", "parameters").flatMap(([name, definition]) => {
    const kind = KINDS[textOf(definition.parameterType)];
    if (!kind) return [];
    const initial = definition.defaultValue ?? undefined;
    return {
      name,
      kind,
      description: textOf(definition.description),
      initial,
      required: definition.isOptional !== true && initial === undefined,
      choices: listOf(definition.literals),
    };
  });
}

/** Artifacts that the pipeline wants as inputs; nobody can type those. */
export function readArtifactInputs(spec: unknown): string[] {
  return Object.keys(part(spec, "root", "inputDefinitions", "artifacts"));
}

const MAX_LINE = 70;

function sameJson(text: string, value: unknown): boolean {
  try {
    return sameValue(JSON.parse(text), value);
  } catch {
    return false;
  }
}

/** A value as it stands in the control of the form. */
export function toText(value: unknown, kind: Kind): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  if (kind !== "list" && kind !== "structure") return JSON.stringify(value);
  const indented = JSON.stringify(value, null, 2);
  const line = indented.replace(/\n\s*/g, " ").replace(/([[{]) | ([\]}])/g, "$1$2");
  // A text with line breaks or brackets may have been changed: then it stays as it is.
  return line.length <= MAX_LINE && sameJson(line, value) ? line : indented;
}

export type Parsed = { value: unknown } | { error: string } | { missing: true };

const INTEGER = /^[+-]?\d+$/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** What the user typed: a value, what is wrong with it, or nothing. */
export function parseText(typed: string, parameter: Parameter): Parsed {
  const { kind, required, initial } = parameter;
  const text = kind === "text" ? typed : typed.trim();
  if (text === "") {
    if (required) return { error: "Enter a value." };
    // An empty text is a value of its own, if the default is another text.
    return kind === "text" && initial !== undefined ? { value: "" } : { missing: true };
  }
  const parsed = parseKind(text, kind);
  if ("value" in parsed && parameter.choices.length && !isChoice(parsed.value, parameter))
    return {
      error: `Choose one of ${parameter.choices.map((one) => toText(one, kind)).join(", ")}.`,
    };
  return parsed;
}

function parseKind(text: string, kind: Kind): Parsed {
  switch (kind) {
    case "text":
      return { value: text };
    case "integer":
      if (!INTEGER.test(text)) return { error: "Enter a whole number, such as 10." };
      // The server reads digits that a number of JavaScript would round.
      return { value: Number.isSafeInteger(Number(text)) ? Number(text) : text };
    case "number":
      if (!NUMBER.test(text) || !Number.isFinite(Number(text)))
        return { error: "Enter a number, such as 0.1 or 1e-3." };
      return { value: Number(text) };
    case "boolean":
      if (text !== "true" && text !== "false") return { error: "Choose true or false." };
      return { value: text === "true" };
    case "list":
    case "structure":
      return parseJson(text, kind);
  }
}

function parseJson(text: string, kind: "list" | "structure"): Parsed {
  const example = kind === "list" ? 'a list, such as [1, "b"]' : 'a structure, such as {"a": 1}';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}. Enter ${example}.` };
  }
  const isRight =
    kind === "list"
      ? Array.isArray(value)
      : typeof value === "object" && value !== null && !Array.isArray(value);
  return isRight ? { value } : { error: `Enter ${example}.` };
}

function isChoice(value: unknown, { choices }: Parameter): boolean {
  return choices.some((one) => sameValue(one, value));
}

export function sameValue(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

export interface FormValues {
  /** The values that differ from the defaults. */
  values: Record<string, unknown>;
  errors: Record<string, string>;
}

/**
 * Everything that was typed. Defaults are not sent, so that a schedule that uses the newest version
 * takes its defaults, too.
 */
export function parseForm(parameters: Parameter[], typed: Record<string, string>): FormValues {
  const values: Record<string, unknown> = {};
  const errors: Record<string, string> = {};
  for (const parameter of parameters) {
    const parsed = parseText(typed[parameter.name] ?? "", parameter);
    if ("error" in parsed) errors[parameter.name] = parsed.error;
    else if ("value" in parsed && !sameValue(parsed.value, parameter.initial))
      values[parameter.name] = parsed.value;
  }
  return { values, errors };
}

/** What the form shows at first: the given values, else the defaults. */
export function initialTexts(
  parameters: Parameter[],
  given: Record<string, unknown> = {},
): Record<string, string> {
  return Object.fromEntries(
    parameters.map(({ name, kind, initial }) => [name, toText(given[name] ?? initial, kind)]),
  );
}
