import { expect, test } from "vitest";
import { validateCompareSearch } from "./search";

test("takes from a URL what it understands", () => {
  const search = validateCompareSearch({
    id: ["e1", 2, "e1", {}],
    tab: "parallel",
    smooth: 3,
    log: true,
    marks: "points",
    ranges: { "params.lr": [0, 0.5], bad: [2, 3], odd: "x" },
    all: 1,
  });
  expect(JSON.parse(JSON.stringify(search))).toEqual({
    id: ["e1", "2"],
    tab: "parallel",
    log: true,
    marks: "points",
    ranges: { "params.lr": [0, 0.5] },
  });
  expect(validateCompareSearch(search as Record<string, unknown>)).toEqual(search);
});

test("compares ten at most", () => {
  const many = Array.from({ length: 50 }, (_, n) => `e${n}`);
  expect(validateCompareSearch({ id: many }).id).toHaveLength(10);
});
