import { expect, test } from "vitest";
import { nameProblem, suggestName, toName } from "./names";

test("the first free name is suggested", () => {
  expect(suggestName("notebook", new Set(["notebook-1", "notebook-3"]))).toBe("notebook-2");
});

test.each([
  ["Logs of e5/train", "logs-of-e5-train"],
  ["1st run", "st-run"],
  ["a".repeat(20), "a".repeat(10)],
  ["abcdefghi-jk", "abcdefghi"],
])("%s becomes a name", (text, name) => {
  expect(toName(text, 10)).toBe(name.slice(0, 10).replace(/-$/, ""));
  expect(nameProblem(toName(text, 10), 10)).toBeNull();
});
