/** What the lineage page shows. All of it is in the URL, so that a reload or a link shows the same. */
export interface View {
  /** A file, a version, a process, an execution, a run, …; without one the page offers a search. */
  target?: string;
  direction?: Direction;
  depth?: number;
  /** Nodes, and groups, that were followed one step back or on. */
  before?: string[];
  after?: string[];
  /** A node of each group that shows its members. */
  open?: string[];
  /** Kinds that are left out. */
  hide?: string[];
  since?: string;
  until?: string;
  /** When names of a cluster are meant; what happened later is left out. */
  as_of?: string;
  /** With the files of installed packages. */
  all?: boolean;
  node?: string;
  /** The two ends of the highlighted path; without `to`, the user is choosing it. */
  from?: string;
  to?: string;
  view?: "table";
  sort?: string;
  descending?: boolean;
  /** What the rows of the table contain. */
  filter?: string;
  /** What is open above the page. */
  dialog?: "compare" | "reproduce";
  /** The version that the selected one is compared with. */
  other?: string;
}

export type Direction = "up" | "down" | "both";

export const DEFAULT_DEPTH = 2;
export const ALL_STEPS = 100;
const DIRECTIONS: readonly string[] = ["up", "down"];
const DIALOGS: readonly string[] = ["compare", "reproduce"];
/** As the server accepts it. */
const TIME = /^\d{4}-\d{2}-\d{2}(T[\d:.]{5,15}(Z|[+-][\d:]{5})?)?$/;
const MAX_EXPANDED = 200;
const MAX_LENGTH = 4096;

export function parseView(search: Record<string, unknown>): View {
  const text = (name: string) => {
    const value = search[name];
    // The router parses what looks like JSON: an execution may be called 12.
    if (typeof value === "number") return String(value);
    return typeof value === "string" && value && value.length <= MAX_LENGTH ? value : undefined;
  };
  const texts = (name: string) => {
    const value = search[name];
    if (!Array.isArray(value)) return undefined;
    const found = value.filter((one): one is string => typeof one === "string" && one !== "");
    return found.length ? found.slice(0, MAX_EXPANDED) : undefined;
  };
  const time = (name: string) => {
    const value = text(name);
    return value && TIME.test(value) && !Number.isNaN(Date.parse(value)) ? value : undefined;
  };
  const direction = text("direction");
  const dialog = text("dialog");
  const depth = Number(search.depth);
  const view: View = {
    target: text("target"),
    direction: direction && DIRECTIONS.includes(direction) ? (direction as Direction) : undefined,
    depth:
      Number.isInteger(depth) && depth >= 1 && depth <= ALL_STEPS && depth !== DEFAULT_DEPTH
        ? depth
        : undefined,
    before: texts("before"),
    after: texts("after"),
    open: texts("open"),
    hide: texts("hide"),
    since: time("since"),
    until: time("until"),
    as_of: time("as_of"),
    all: search.all === true || undefined,
    node: text("node"),
    from: text("from"),
    to: text("to"),
    view: search.view === "table" ? "table" : undefined,
    sort: text("sort"),
    descending: search.descending === true || undefined,
    filter: text("filter"),
    dialog: dialog && DIALOGS.includes(dialog) ? (dialog as View["dialog"]) : undefined,
    other: text("other"),
  };
  return Object.fromEntries(
    Object.entries(view).filter(([, value]) => value !== undefined),
  ) as View;
}

/** Another target: what was expanded around the old one is forgotten, filters stay. */
export function startAt(view: View, target: string, direction?: Direction): View {
  const { depth, hide, since, until, as_of, all, view: kind } = view;
  return {
    target,
    direction: direction === "both" ? undefined : (direction ?? view.direction),
    ...{ depth, hide, since, until, as_of, all, view: kind },
    node: target,
  };
}

export function expand(view: View, id: string, side: "before" | "after"): View {
  const known = view[side] ?? [];
  if (known.includes(id)) return view;
  return { ...view, [side]: [...known, id].slice(-MAX_EXPANDED), node: id };
}

/** Show the members of a group. Groups are called `group:` and the id of a member. */
export function openGroup(view: View, group: string): View {
  const id = group.replace(/^group:/, "");
  return { ...view, open: [...(view.open ?? []).filter((one) => one !== id), id], node: id };
}

/** Draw an opened group as one box again. */
export function closeGroup(view: View, group: string, members: ReadonlySet<string>): View {
  const open = (view.open ?? []).filter((id) => !members.has(id));
  return { ...view, open: open.length ? open : undefined, node: group };
}

export function toggleKind(view: View, kind: string): View {
  const hidden = new Set(view.hide);
  if (!hidden.delete(kind)) hidden.add(kind);
  return { ...view, hide: hidden.size ? [...hidden] : undefined };
}

/** Selecting a box; while the other end of a path is wanted, it becomes that. */
export function select(view: View, id: string | null): View {
  if (id && view.from && !view.to && id !== view.from && !id.startsWith("group:"))
    return { ...view, to: id, node: id };
  return { ...view, node: id ?? undefined };
}

export function isNarrowed(view: View): boolean {
  return Boolean(view.hide?.length || view.since || view.until || view.as_of);
}
