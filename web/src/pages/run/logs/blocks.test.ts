import { expect, test } from "vitest";
import { blocksOf, findBlock, joinIndex, LINE_HEIGHT, ScrollScale, splitLines } from "./blocks";

const BLOCKS: [number, number][] = [
  [0, 0],
  [100, 6000],
  [250, 12000],
];

test.each([
  [0, 0],
  [99, 0],
  [100, 1],
  [249, 1],
  [250, 2],
  [9999, 2],
])("line %d is in block %d", (line, block) => {
  expect(findBlock(BLOCKS, line)).toBe(block);
});

test("the window of lines names its blocks", () => {
  expect(blocksOf(BLOCKS, 90, 101)).toEqual([0, 1]);
  expect(blocksOf(BLOCKS, 90, 100)).toEqual([0]);
  expect(blocksOf(BLOCKS, 0, 0)).toEqual([]);
  expect(blocksOf([], 0, 10)).toEqual([]);
});

test("an index grows by its last blocks, and begins anew with another attempt", () => {
  const before = { attempt: "a", complete: false, lines: 260, size: 13000, blocks: BLOCKS };
  const next = {
    ...before,
    lines: 400,
    blocks: [
      [250, 12000],
      [380, 18000],
    ] as [number, number][],
  };
  expect(joinIndex(before, next, 2).blocks).toEqual([...BLOCKS, [380, 18000]]);
  expect(joinIndex(before, { ...next, attempt: "b" }, 0)).toEqual({ ...next, attempt: "b" });
  expect(joinIndex(undefined, next, 0)).toBe(next);
});

test("splits lines, and shows the end of progress bars", () => {
  expect(splitLines("a\nb\n")).toEqual(["a", "b"]);
  expect(splitLines("a\n\nb")).toEqual(["a", "", "b"]);
  expect(splitLines("10%\r50%\r100%\nend\r\n")).toEqual(["100%", "end"]);
});

test("every line of a huge log can be reached", () => {
  for (const lines of [10, 1000, 1_000_000, 50_000_000]) {
    const scale = new ScrollScale(lines, 600);
    expect(scale.height).toBeLessThanOrEqual(8_000_000);
    expect(scale.toLog(0)).toBe(0);
    expect(scale.toLog(scale.height - 600)).toBeCloseTo(scale.logHeight - 600, 0);
    const top = Math.floor(lines / 2) * LINE_HEIGHT;
    expect(scale.toLog(scale.toBar(top))).toBeCloseTo(top, 3);
  }
  expect(new ScrollScale(1000, 600).isCoarse).toBe(false);
  expect(new ScrollScale(1_000_000, 600).isCoarse).toBe(true);
});
