/**
 * The parts of a compiled pipeline that the app shows. The file comes from users: every reader
 * accepts anything, and takes what is not of the expected type as missing.
 */
export type Json = Record<string, unknown>;

export function part(value: unknown, ...path: string[]): Json {
  let found: unknown = value;
  for (const name of path) found = isObject(found) ? found[name] : undefined;
  return isObject(found) ? found : {};
}

export function parts(value: unknown, ...path: string[]): [string, Json][] {
  return Object.entries(part(value, ...path)).map(([name, one]) => [name, part(one)]);
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The component of a task, and its executor. */
export function componentOf(spec: unknown, task: Json): Json {
  return part(spec, "components", textOf(part(task, "componentRef").name));
}

export function executorOf(spec: unknown, component: Json): Json {
  return part(spec, "deploymentSpec", "executors", textOf(component.executorLabel));
}

/** What the types of parameters are called in the app. */
export const TYPE_NAMES: Record<string, string> = {
  STRING: "text",
  NUMBER_INTEGER: "whole number",
  NUMBER_DOUBLE: "number",
  BOOLEAN: "true or false",
  LIST: "list",
  STRUCT: "structure",
  TASK_FINAL_STATUS: "status of a task",
  TASK_CONFIG: "task configuration",
};

/** `system.Dataset` is shown as `Dataset`. */
export function artifactType(definition: Json): string {
  const type = part(definition, "artifactType");
  const title = textOf(type.schemaTitle) || textOf(type.instanceSchema) || "system.Artifact";
  const name = title.replace(/^system\./, "");
  return definition.isArtifactList === true ? `list of ${name}` : name;
}
