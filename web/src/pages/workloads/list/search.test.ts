import { expect, test } from "vitest";
import { arrange, readListSearch } from "./search";

const ROWS = [
  { name: "b-10", state: "running" },
  { name: "b-9", state: "stopped" },
  { name: "a", state: "stopped" },
];
const HOW = { keys: { name: (row: (typeof ROWS)[0]) => row.name }, text: Object.values };

function names(filter: string | undefined, descending: boolean): string[] {
  const text = (row: (typeof ROWS)[0]) => HOW.text(row).join(" ");
  const found = arrange(ROWS, { filter, sort: { column: "name", descending } }, { ...HOW, text });
  return found.map(({ name }) => name);
}

test("numbers in names order as numbers", () => {
  expect(names(undefined, false)).toEqual(["a", "b-9", "b-10"]);
  expect(names(undefined, true)).toEqual(["b-10", "b-9", "a"]);
});

test("all words of the filter are found", () => {
  expect(names("stopped B", false)).toEqual(["b-9"]);
  expect(names("nothing", false)).toEqual([]);
});

test("an address keeps only what is valid", () => {
  expect(readListSearch({ filter: 3, sort: "", descending: "yes", other: 1 })).toEqual({
    namespace: undefined,
    filter: "3",
    sort: undefined,
    descending: undefined,
  });
});
