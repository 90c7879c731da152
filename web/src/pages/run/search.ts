export const FILE_ROLES = ["output", "input", "transient"] as const;
export const FILE_CLASSES = ["data", "configuration", "source", "package", "system"] as const;

/** The view of a run, as the URL has it. What is missing has its default. */
export interface RunSearch {
  tab?: string;
  /** The selected task of a pipeline run, by its name. */
  task?: string;
  /** The tab of the selected task. */
  part?: string;
  /** The graph of a run, or its table. */
  view?: "graph" | "table";
  /** The version of a file that is shown. */
  file?: string;
  /** What the list of files shows: a part of the path, the role and the kind. */
  path?: string;
  role?: (typeof FILE_ROLES)[number];
  category?: (typeof FILE_CLASSES)[number];
  stream?: "stdout" | "stderr";
  /** A line of the log, from 1. */
  line?: number;
  /** What is searched in the log, or among the variables. */
  find?: string;
  wrap?: boolean;
  /** The repeat that is shown. */
  repeat?: string;
}

const LONGEST = 4096;

function text(value: unknown): string | undefined {
  const given = typeof value === "number" || typeof value === "boolean" ? String(value) : value;
  return typeof given === "string" && given ? given.slice(0, LONGEST) : undefined;
}

function oneOf<T extends string>(value: unknown, ...known: T[]): T | undefined {
  return known.find((one) => one === value);
}

/** Takes what it understands from a URL that anyone may have written. */
export function validateRunSearch(search: Record<string, unknown>): RunSearch {
  const line = Number(search.line);
  return {
    tab: text(search.tab),
    task: text(search.task),
    part: text(search.part),
    view: oneOf(search.view, "graph", "table"),
    file: text(search.file),
    path: text(search.path),
    role: oneOf(search.role, ...FILE_ROLES),
    category: oneOf(search.category, ...FILE_CLASSES),
    stream: oneOf(search.stream, "stdout", "stderr"),
    line: Number.isSafeInteger(line) && line > 0 ? line : undefined,
    find: text(search.find)?.slice(0, 200),
    wrap: search.wrap === true ? true : undefined,
    repeat: text(search.repeat),
  };
}
