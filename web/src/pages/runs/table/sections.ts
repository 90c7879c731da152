/**
 * The rows of the table, of which only a part is loaded: those of one list, or the headers of groups
 * with the rows of the groups that are open. Turns a position in the table into a place in a list.
 */

export const PAGE_SIZE = 100;

export interface Section {
  /** The key of the group; undefined: all rows, without a header. */
  group?: string | null;
  total: number;
  /** Whether its rows are shown. */
  open: boolean;
}

export type Place =
  | { kind: "header"; section: number }
  | { kind: "row"; section: number; index: number };

export interface PageOfSection {
  section: number;
  page: number;
}

export class RowLayout {
  /** The position of the first row, or header, of each section. */
  private readonly starts: number[] = [];
  readonly length: number;

  constructor(readonly sections: Section[]) {
    let at = 0;
    for (const section of sections) {
      this.starts.push(at);
      at += (section.group === undefined ? 0 : 1) + (section.open ? section.total : 0);
    }
    this.length = at;
  }

  /** What is at a position from 0 to `length - 1`. */
  locate(position: number): Place {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.starts[middle] as number) <= position) low = middle;
      else high = middle - 1;
    }
    const index = position - (this.starts[low] as number);
    if (this.sections[low]?.group === undefined) return { kind: "row", section: low, index };
    return index === 0
      ? { kind: "header", section: low }
      : { kind: "row", section: low, index: index - 1 };
  }

  /** The pages that have the rows from one position to another. */
  pagesBetween(first: number, last: number): PageOfSection[] {
    const found = new Map<string, PageOfSection>();
    for (let at = Math.max(0, first); at <= Math.min(last, this.length - 1); at++) {
      const place = this.locate(at);
      if (place.kind !== "row") continue;
      const page = Math.floor(place.index / PAGE_SIZE);
      found.set(`${place.section}/${page}`, { section: place.section, page });
    }
    return [...found.values()];
  }
}
