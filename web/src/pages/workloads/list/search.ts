import type { Sort } from "@/components/data-table";

/** The state of a list, as its address has it. */
export interface ListSearch {
  namespace?: string;
  filter?: string;
  sort?: string;
  descending?: boolean;
}

export function readListSearch(search: Record<string, unknown>): ListSearch {
  return {
    namespace: readText(search.namespace),
    filter: readText(search.filter),
    sort: readText(search.sort),
    descending: search.descending === true ? true : undefined,
  };
}

/** A text of an address; a number is one, too: `?filter=3` is parsed as JSON. */
export function readText(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value ? value.slice(0, 512) : undefined;
}

export function sortOf({ sort, descending }: ListSearch, usual: string): Sort {
  return { column: sort ?? usual, descending: descending ?? false };
}

/** How each column orders: by texts, or by numbers. */
export type SortKeys<Row> = Record<string, (row: Row) => string | number>;

/** The rows that contain all words of the filter, in order. */
export function arrange<Row>(
  rows: readonly Row[],
  search: { filter?: string; sort: Sort },
  { keys, text }: { keys: SortKeys<Row>; text: (row: Row) => string },
): Row[] {
  const words = (search.filter ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const shown = rows.filter((row) => {
    const found = text(row).toLowerCase();
    return words.every((word) => found.includes(word));
  });
  const key = keys[search.sort.column];
  if (!key) return shown;
  const sign = search.sort.descending ? -1 : 1;
  const keyed = shown.map((row): [string | number, Row] => [key(row), row]);
  keyed.sort(([a], [b]) => sign * compare(a, b));
  return keyed.map(([, row]) => row);
}

const COLLATOR = new Intl.Collator("en", { numeric: true });

function compare(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return COLLATOR.compare(String(a), String(b));
}

/** A time as a number, for sorting; 0: it is not known. */
export function timeKey(at: string): number {
  return Date.parse(at) || 0;
}
