import { expect, test } from "vitest";
import type { ActivityGroup } from "../use-activities";
import { sortGroups } from "./group-order";

function group(label: string | null, seconds: number | null, mean?: number): ActivityGroup {
  const metrics: ActivityGroup["metrics"] =
    mean === undefined ? {} : { acc: { min: mean, max: mean, mean } };
  return { key: label, label, total: 1, states: {}, newest: null, seconds, metrics };
}

const GROUPS = [group("10", 3, 0.5), group(null, null), group("9", 1, 0.7), group("auto", 2)];

test.each([
  ["metrics.acc", "desc", ["9", "10", null, "auto"]],
  ["metrics.acc", "asc", ["10", "9", null, "auto"]],
  ["seconds", "desc", ["10", "auto", "9", null]],
  ["name", "asc", ["9", "10", "auto", null]],
  ["name", "desc", ["10", "9", "auto", null]],
  ["metrics.toString", "asc", ["10", null, "9", "auto"]],
] as const)("sorts groups by %s, %s", (sort, order, expected) => {
  expect(sortGroups(GROUPS, { sort, order }).map(({ label }) => label)).toEqual(expected);
});
