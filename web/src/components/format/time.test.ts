import { expect, test } from "vitest";
import { formatExact, formatRelative, formatSeconds } from "./time";

const NOW = new Date("2026-03-01T12:00:00Z");

test.each([
  ["2026-03-01T11:59:40Z", "just now"],
  ["2026-03-01T11:55:00Z", "5 minutes ago"],
  ["2026-02-28T12:00:00Z", "yesterday"],
  ["2026-03-01T14:00:00Z", "in 2 hours"],
])("formats %s", (at, text) => {
  expect(formatRelative(new Date(at), NOW)).toBe(text);
});

test.each([
  [0.0123, "12 ms"],
  [4.25, "4.3 s"],
  [185, "3 min 5 s"],
  [7800, "2 h 10 min"],
])("formats %d seconds", (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text);
});

test("formats an exact time in UTC", () => {
  expect(formatExact(new Date("2026-03-14T09:26:53Z"), "utc")).toBe("14 Mar 2026, 09:26:53 UTC");
});
