import { expect, test } from "vitest";
import { frameAround } from "./viewport";

const WINDOW = { width: 1000, height: 500 };
const box = (x: number, y: number) => ({ x, y, width: 100, height: 50 });

test("a box in the middle of a large graph is centred", () => {
  const middle = box(2000, 1000);
  const { x, y } = frameAround(middle, [box(0, 0), middle, box(4000, 2000)], WINDOW, 1);
  expect(2050 + x).toBe(500);
  expect(1025 + y).toBe((64 + 476) / 2);
});

test("a box at the edge of a large graph leaves no empty space beside it", () => {
  const last = box(4000, 2000);
  const { x, y } = frameAround(last, [box(0, 0), last], WINDOW, 1);
  expect(4100 + x).toBe(976);
  expect(2050 + y).toBe(476);
});

test("a graph that is smaller than the window is centred", () => {
  const only = box(100, 100);
  const { x, y } = frameAround(only, [only], WINDOW, 1);
  expect(150 + x).toBe(500);
  expect(125 + y).toBe(270);
});
