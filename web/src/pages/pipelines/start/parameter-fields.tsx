import { RotateCcw } from "lucide-react";
import { IconButton } from "@/components/button";
import { Field, Input, Select } from "@/components/fields/field";
import { type Parameter, toText } from "../spec/parameters";

interface Props {
  parameters: Parameter[];
  texts: Record<string, string>;
  errors: Record<string, string>;
  /** Also show what is missing: the user has tried to submit. */
  showMissing: boolean;
  onChange: (name: string, text: string) => void;
}

const LONG_TEXT = 50;
const MAX_ROWS = 12;
const TYPES: Record<Parameter["kind"], string> = {
  text: "Text",
  integer: "Whole number",
  number: "Number",
  boolean: "True or false",
  list: "List, as JSON",
  structure: "Structure, as JSON",
};

/** A control for each parameter of a pipeline, by its type. */
export function ParameterFields({ parameters, texts, errors, showMissing, onChange }: Props) {
  if (!parameters.length) return <p className="text-quiet">This pipeline has no parameters.</p>;
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      {parameters.map((parameter) => {
        const { name, kind, initial } = parameter;
        const text = texts[name] ?? "";
        const hasError = errors[name] && (text.trim() !== "" || showMissing);
        const isChanged = initial !== undefined && text !== toText(initial, kind);
        const isWide = text.includes("\n") || text.length > LONG_TEXT;
        return (
          <div key={name} className={`flex items-start gap-1 ${isWide ? "sm:col-span-2" : ""}`}>
            <div className="min-w-0 flex-1">
              <Field
                label={parameter.required ? `${name} (required)` : name}
                hint={hint(parameter)}
                error={hasError ? errors[name] : null}
              >
                <Control
                  parameter={parameter}
                  text={text}
                  onText={(next) => onChange(name, next)}
                />
              </Field>
            </div>
            {isChanged && (
              <IconButton
                label={`Take the default of ${name}`}
                className="mt-6.5 px-1.5"
                onClick={() => onChange(name, toText(initial, kind))}
              >
                <RotateCcw size={15} aria-hidden />
              </IconButton>
            )}
          </div>
        );
      })}
    </div>
  );
}

function hint({ kind, description, required, initial }: Parameter): string {
  const words = [kind === "text" && description ? "" : TYPES[kind]];
  if (!required && initial === undefined) words.push("Optional");
  return [description, ...words.filter(Boolean).map((word) => `${word}.`)]
    .filter(Boolean)
    .join(" ");
}

function isMultiline({ kind, initial }: Parameter): boolean {
  if (kind === "list" || kind === "structure") return true;
  return kind === "text" && toText(initial, kind).length > LONG_TEXT;
}

interface ControlProps {
  parameter: Parameter;
  text: string;
  onText: (text: string) => void;
  id?: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

/** `Field` gives it the id and what describes it. */
function Control({ parameter, text, onText, ...rest }: ControlProps) {
  const { kind, choices, required, initial } = parameter;
  const options = choices.length
    ? choices.map((one) => toText(one, kind))
    : kind === "boolean"
      ? ["true", "false"]
      : null;
  if (options) {
    return (
      <Select {...rest} value={text} onChange={(event) => onText(event.target.value)}>
        {initial === undefined && <option value="">{required ? "Choose" : "Not set"}</option>}
        {!options.includes(text) && text !== "" && <option value={text}>{text}</option>}
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </Select>
    );
  }
  if (isMultiline(parameter)) {
    return (
      <textarea
        {...rest}
        rows={Math.min(MAX_ROWS, text.split("\n").length)}
        spellCheck={false}
        className="w-full rounded-md border border-line-strong bg-surface px-2.5 py-1 font-mono aria-invalid:border-failure"
        value={text}
        onChange={(event) => onText(event.target.value)}
      />
    );
  }
  return (
    <Input
      {...rest}
      inputMode={kind === "integer" ? "numeric" : kind === "number" ? "decimal" : undefined}
      autoComplete="off"
      spellCheck={false}
      value={text}
      onChange={(event) => onText(event.target.value)}
    />
  );
}
