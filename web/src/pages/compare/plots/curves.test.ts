import { expect, test } from "vitest";
import { align, onlyPositive, scale, smooth } from "./curves";

test("smoothing keeps a constant, gaps and the length", () => {
  expect(smooth([2, 2, null, 2], 0.9).map((v) => v && Math.round(v * 1e9) / 1e9)).toEqual([
    2,
    2,
    null,
    2,
  ]);
  expect(smooth([1, 3], 0)).toEqual([1, 3]);
  expect(smooth([0, 1], 0.5)[1]).toBeCloseTo(2 / 3);
});

test("aligns curves with different steps", () => {
  const { steps, values } = align([
    [
      [0, 1],
      [2, null],
      [2, 5],
    ],
    [[1, 7]],
  ]);
  expect(steps).toEqual([0, 1, 2]);
  expect(values).toEqual([
    [1, undefined, 5],
    [undefined, 7, undefined],
  ]);
});

test("logarithmic axes leave out what is not positive", () => {
  expect(onlyPositive([1, 0, -1, null])).toEqual([1, null, null, null]);
});

test("scales between the least and the greatest", () => {
  expect(scale(3, 1, 5)).toBe(0.5);
  expect(scale(10, 1, 100, true)).toBeCloseTo(0.5);
  expect(scale(1, 1, 1)).toBe(0.5);
});
