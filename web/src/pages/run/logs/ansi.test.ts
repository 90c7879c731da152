import { expect, test } from "vitest";
import { markMatches, parseLine } from "./ansi";

test("a line without colours is one segment", () => {
  expect(parseLine("plain <b>text</b>")).toEqual([{ text: "plain <b>text</b>" }]);
});

test("colours become classes, and nothing becomes HTML", () => {
  const found = parseLine("\u001b[1;31mfailed\u001b[0m <img src=x onerror=alert(1)>");
  expect(found).toEqual([
    { text: "failed", className: "text-failure font-bold" },
    { text: " <img src=x onerror=alert(1)>", className: undefined },
  ]);
});

test("bright and unknown colours", () => {
  expect(parseLine("\u001b[92mok\u001b[38;5;200mx")).toEqual([
    { text: "ok", className: "text-success" },
    { text: "x", className: undefined },
  ]);
});

test("links show their text only", () => {
  const found = parseLine("\u001b]8;;https://example.org\u0007there\u001b]8;;\u0007 end");
  expect(found.map(({ text }) => text).join("")).not.toContain("<a");
});

test("a long line is cut", () => {
  expect(parseLine("x".repeat(100_000))[0]?.text.length).toBeLessThan(6000);
});

test("matches are marked across segments", () => {
  const marked = markMatches([{ text: "lo", className: "a" }, { text: "ss: Loss" }], "loss");
  expect(marked.map(({ text, match }) => [text, match])).toEqual([
    ["lo", true],
    ["ss", true],
    [": ", false],
    ["Loss", true],
  ]);
  expect(markMatches([{ text: "a" }], "b")).toEqual([{ text: "a" }]);
});
