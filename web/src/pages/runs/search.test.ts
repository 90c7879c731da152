import { expect, test } from "vitest";
import { condition, parseSort, toFilter, toggle, toggleSort, validateRunsSearch } from "./search";

test("takes from a URL what it understands", () => {
  const search = validateRunsSearch({
    q: 12,
    state: ["failed", "odd", "failed"],
    type: "run",
    tag: [],
    archived: "yes",
    columns: ["state", { a: 1 }, "metrics.acc"],
    open: [null, "0.1", 3],
    selected: ["e1", "e1"],
    password: "x",
  });
  expect(JSON.parse(JSON.stringify(search))).toEqual({
    q: "12",
    state: ["failed"],
    columns: ["state", "metrics.acc"],
    open: [null, "0.1"],
    selected: ["e1"],
  });
  expect(validateRunsSearch(search as Record<string, unknown>)).toEqual(search);
  expect(toFilter(search)).toMatchObject({ q: "12", state: ["failed"] });
});

test("bounds what a URL may have", () => {
  const many = Array.from({ length: 1000 }, (_, n) => `e${n}`);
  const search = validateRunsSearch({ selected: many, q: "x".repeat(9000) });
  expect(search.selected).toHaveLength(200);
  expect(search.q).toHaveLength(2000);
});

test("sorts by the newest first, then as clicked", () => {
  expect(parseSort({})).toEqual({ sort: "started", order: "desc" });
  expect(toggleSort({}, "started")).toBe("started");
  expect(toggleSort({ sort: "started" }, "started")).toBeUndefined();
  expect(toggleSort({}, "metrics.acc")).toBe("-metrics.acc");
  expect(toggleSort({ sort: "-metrics.acc" }, "metrics.acc")).toBe("metrics.acc");
  expect(parseSort({ sort: "metrics.acc" })).toEqual({ sort: "metrics.acc", order: "asc" });
});

test("toggles values of a list", () => {
  expect(toggle(undefined, "a")).toEqual(["a"]);
  expect(toggle(["a", "b"], "a")).toEqual(["b"]);
  expect(toggle(["a"], "a")).toBeUndefined();
});

test.each([
  ["lr", 0.1, "params.lr = 0.1"],
  ["learning rate", "a b", 'params."learning rate" = "a b"'],
  ['x"y', true, 'params."xy" = true'],
])("writes the condition on %s", (name, value, expected) => {
  expect(condition("params", name, value)).toBe(expected);
});
