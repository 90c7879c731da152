import type { Schemas } from "@/api/client";

type State = Schemas["Activity"]["state"];
type Type = Schemas["Activity"]["type"];

/** The view of the table, as the URL has it. What is missing has its default. */
export interface RunsSearch {
  q?: string;
  state?: State[];
  type?: Type[];
  tag?: string[];
  archived?: boolean;
  /** A column; with `-` before it, descending. */
  sort?: string;
  columns?: string[];
  group?: string;
  /** The keys of the groups that are open; null: the group of those without a value. */
  open?: (string | null)[];
  selected?: string[];
}

export const DEFAULT_SORT = "-started";
export const STATES: State[] = [
  "pending",
  "running",
  "done",
  "succeeded",
  "failed",
  "broken",
  "canceled",
];
export const TYPES: Type[] = ["execution", "run", "task"];
const MOST = 200;
const MOST_TAGS = 10;
const LONGEST = 2000;

function text(value: unknown): string | undefined {
  // The router turns what looks like a number in the URL into one.
  const given = typeof value === "number" || typeof value === "boolean" ? String(value) : value;
  return typeof given === "string" && given ? given.slice(0, LONGEST) : undefined;
}

function texts(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const found = value.map(text).filter((one) => one !== undefined);
  return found.length ? [...new Set(found)].slice(0, MOST) : undefined;
}

function some<T extends string>(value: unknown, known: T[]): T[] | undefined {
  const found = (texts(value) ?? []).filter((one): one is T => known.includes(one as T));
  return found.length ? found : undefined;
}

/** Takes what it understands from a URL that anyone may have written. */
export function validateRunsSearch(search: Record<string, unknown>): RunsSearch {
  const keys = Array.isArray(search.open)
    ? search.open.filter((key): key is string | null => key === null || typeof key === "string")
    : [];
  return {
    q: text(search.q),
    state: some(search.state, STATES),
    type: some(search.type, TYPES),
    tag: texts(search.tag)?.slice(0, MOST_TAGS),
    archived: search.archived === true || undefined,
    sort: text(search.sort),
    columns: texts(search.columns),
    group: text(search.group),
    open: keys.length ? keys.slice(0, MOST) : undefined,
    selected: texts(search.selected),
  };
}

/** The filters, as the server takes them. */
export function toFilter(search: RunsSearch) {
  return {
    q: search.q,
    state: search.state,
    type: search.type,
    tag: search.tag,
    archived: search.archived,
  };
}

export type Filter = ReturnType<typeof toFilter>;

export function isFiltered(search: RunsSearch): boolean {
  return Boolean(search.q || search.state || search.type || search.tag || search.archived);
}

export function parseSort(search: RunsSearch): { sort: string; order: "asc" | "desc" } {
  const sort = search.sort ?? DEFAULT_SORT;
  return sort.startsWith("-") ? { sort: sort.slice(1), order: "desc" } : { sort, order: "asc" };
}

/** The sorting after a click on a column: first descending, then ascending. */
export function toggleSort(search: RunsSearch, column: string): string | undefined {
  const next = (search.sort ?? DEFAULT_SORT) === `-${column}` ? column : `-${column}`;
  return next === DEFAULT_SORT ? undefined : next;
}

/** The list with the value, or without it if it was there; nothing for an empty list. */
export function toggle<T>(list: T[] | undefined, value: T): T[] | undefined {
  const next = list?.includes(value)
    ? list.filter((one) => one !== value)
    : [...(list ?? []), value];
  return next.length ? next : undefined;
}

/** The word of a query that asks for the exact value of a parameter, or less than it, …. */
export function condition(place: "params" | "metrics", name: string, value: unknown): string {
  const quote = (part: string) => (/^[\w.-]+$/.test(part) ? part : `"${part.replaceAll('"', "")}"`);
  return `${place}.${quote(name)} = ${quote(String(value))}`;
}
