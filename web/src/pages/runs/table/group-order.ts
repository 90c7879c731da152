import type { ActivityGroup } from "../use-activities";

type Key = number | string | null;

/** What a group is sorted by; null: it has no such value. */
function findKey(group: ActivityGroup, sort: string): Key {
  if (sort === "seconds") return group.seconds;
  if (sort === "started" || sort === "ended") return group.newest;
  if (sort.startsWith("metrics.")) {
    const name = sort.slice("metrics.".length);
    return Object.hasOwn(group.metrics, name) ? (group.metrics[name]?.mean ?? null) : null;
  }
  if (group.label === null) return null;
  const number = Number(group.label);
  return group.label.trim() && !Number.isNaN(number) ? number : group.label;
}

/**
 * Groups in the order of the rows: by the average of a metric, by the newest of them, and else by
 * their own value. Those without one come last, whichever way the others are sorted.
 */
export function sortGroups(
  groups: ActivityGroup[],
  { sort, order }: { sort: string; order: "asc" | "desc" },
): ActivityGroup[] {
  const sign = order === "asc" ? 1 : -1;
  const keyed = groups.map((group) => [findKey(group, sort), group] as const);
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    if (typeof a === typeof b) return a < b ? -sign : a > b ? sign : 0;
    return typeof a === "number" ? -1 : 1;
  });
  return keyed.map(([, group]) => group);
}
