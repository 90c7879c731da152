import { expect, test } from "vitest";
import { count } from "./count";

test("one is not many", () => {
  expect([0, 1, 1700].map((number) => count(number, "file"))).toEqual([
    "0 files",
    "1 file",
    "1,700 files",
  ]);
  expect(count(2, "entry", "entries")).toBe("2 entries");
});
