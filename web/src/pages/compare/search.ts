export const TABS = [
  "differences",
  "metrics",
  "parallel",
  "scatter",
  "code",
  "environment",
] as const;
export type TabId = (typeof TABS)[number];
/** From 0, the bottom of an axis, to 1. */
export type Range = [number, number];

/** The view of a comparison, as the URL has it. What is missing has its default. */
export interface CompareSearch {
  id?: string[];
  tab?: TabId;
  /** The id of the entry that the others are compared with. */
  baseline?: string;
  /** Show also what is equal. */
  all?: boolean;
  /** Of the properties, or the metrics, whose names contain it. */
  q?: string;
  log?: boolean;
  /** From 0 to 0.99: how much a curve is smoothed. */
  smooth?: number;
  marks?: "points";
  axes?: string[];
  ranges?: Record<string, Range>;
  x?: string;
  y?: string;
  /** The file whose content is compared, and the entry that is compared with the baseline. */
  file?: string;
  other?: string;
}

export const MOST_ENTRIES = 10;
const MOST_AXES = 30;
const LONGEST = 2000;

function text(value: unknown): string | undefined {
  const given = typeof value === "number" || typeof value === "boolean" ? String(value) : value;
  return typeof given === "string" && given ? given.slice(0, LONGEST) : undefined;
}

function texts(value: unknown, most: number): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const found = value.map(text).filter((one) => one !== undefined);
  return found.length ? [...new Set(found)].slice(0, most) : undefined;
}

function fraction(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 1;
}

function ranges(value: unknown): Record<string, Range> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const found = Object.entries(value).filter(
    ([, range]) => Array.isArray(range) && range.length === 2 && range.every(fraction),
  );
  return found.length ? Object.fromEntries(found.slice(0, MOST_AXES)) : undefined;
}

/** Takes what it understands from a URL that anyone may have written. */
export function validateCompareSearch(search: Record<string, unknown>): CompareSearch {
  const smooth = search.smooth;
  return {
    id: texts(search.id, MOST_ENTRIES),
    tab: TABS.find((tab) => tab === search.tab),
    baseline: text(search.baseline),
    all: search.all === true || undefined,
    q: text(search.q),
    log: search.log === true || undefined,
    smooth: typeof smooth === "number" && smooth > 0 && smooth <= 0.99 ? smooth : undefined,
    marks: search.marks === "points" ? "points" : undefined,
    axes: texts(search.axes, MOST_AXES),
    ranges: ranges(search.ranges),
    x: text(search.x),
    y: text(search.y),
    file: text(search.file),
    other: text(search.other),
  };
}
