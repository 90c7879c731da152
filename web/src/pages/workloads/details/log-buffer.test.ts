import { expect, test } from "vitest";
import { appendText, EMPTY_LOG } from "./log-buffer";

const read = (...parts: string[]) => parts.reduce(appendText, EMPTY_LOG).lines;

test("parts of a line are joined", () => {
  expect(read("one\ntw", "o\nthree")).toEqual(["one", "two", "three"]);
  expect(read("one\n", "two\n")).toEqual(["one", "two", ""]);
});

test("colours are removed, and progress bars show their last state", () => {
  expect(read("\u001b[32m[I]\u001b[m ready\r\n")).toEqual(["[I] ready", ""]);
  expect(read("10%\r50%", "\r100%\ndone")).toEqual(["100%", "done"]);
});

test("only the last lines are kept", () => {
  const log = appendText(EMPTY_LOG, "x\n".repeat(60_000));
  expect(log.lines.length).toBe(50_000);
  expect(log.dropped).toBe(10_001);
});
