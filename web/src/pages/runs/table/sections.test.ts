import { expect, test } from "vitest";
import { RowLayout } from "./sections";

test("a list without groups is one section", () => {
  const layout = new RowLayout([{ total: 250, open: true }]);
  expect(layout.length).toBe(250);
  expect(layout.locate(249)).toEqual({ kind: "row", section: 0, index: 249 });
  expect(layout.pagesBetween(95, 105)).toEqual([
    { section: 0, page: 0 },
    { section: 0, page: 1 },
  ]);
  expect(layout.pagesBetween(240, 400)).toEqual([{ section: 0, page: 2 }]);
});

test("groups have headers, and open ones have rows", () => {
  const layout = new RowLayout([
    { group: "a", total: 3, open: false },
    { group: null, total: 2, open: true },
    { group: "c", total: 0, open: true },
    { group: "d", total: 150, open: true },
  ]);
  expect(layout.length).toBe(4 + 2 + 150);
  const places = Array.from({ length: 7 }, (_, at) => layout.locate(at));
  expect(places).toEqual([
    { kind: "header", section: 0 },
    { kind: "header", section: 1 },
    { kind: "row", section: 1, index: 0 },
    { kind: "row", section: 1, index: 1 },
    { kind: "header", section: 2 },
    { kind: "header", section: 3 },
    { kind: "row", section: 3, index: 0 },
  ]);
  expect(layout.pagesBetween(0, 3)).toEqual([{ section: 1, page: 0 }]);
  expect(layout.pagesBetween(0, 155)).toEqual([
    { section: 1, page: 0 },
    { section: 3, page: 0 },
    { section: 3, page: 1 },
  ]);
});

test("an empty table has no rows", () => {
  const layout = new RowLayout([{ total: 0, open: true }]);
  expect(layout.length).toBe(0);
  expect(layout.pagesBetween(0, 30)).toEqual([]);
});
