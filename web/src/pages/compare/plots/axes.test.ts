import { expect, test } from "vitest";
import type { Schemas } from "@/api/client";
import {
  brush,
  buildAxes,
  buildAxis,
  defaultAxes,
  isWithin,
  position,
  valueAt,
  varies,
} from "./axes";

const ROW = { differs: true };
const COMPARISON = {
  entries: [],
  series: {},
  sections: [
    {
      name: "parameters",
      left_out: 0,
      rows: [
        { ...ROW, name: "lr", values: [0.1, 0.3, 0.2] },
        { ...ROW, name: "opt", values: ["sgd", "adam", null] },
        { ...ROW, name: "epochs", values: [20, 20, 20] },
        { ...ROW, name: "size", values: [1, "auto", true] },
      ],
    },
    { name: "metrics", left_out: 0, rows: [{ ...ROW, name: "acc", values: [null, 1, 2] }] },
    { name: "git", left_out: 0, rows: [{ ...ROW, name: "commit", values: ["a", "b", "c"] }] },
  ],
} as unknown as Schemas["ActivityComparison"];

test("makes axes of parameters and metrics only, and shows those that vary", () => {
  const axes = buildAxes(COMPARISON);
  expect(axes.map(({ id }) => id)).toEqual([
    "params.lr",
    "params.opt",
    "params.epochs",
    "params.size",
    "metrics.acc",
  ]);
  expect(axes.map(varies)).toEqual([true, true, false, true, true]);
  expect(defaultAxes(axes)).toEqual(["params.lr", "params.opt", "params.size", "metrics.acc"]);
  expect(defaultAxes(axes, 2)).toEqual(["params.lr", "metrics.acc"]);
});

test("places numbers by their value, and everything else in equal distances", () => {
  const [lr, opt, epochs, size] = buildAxes(COMPARISON);
  const places = (axis: typeof lr) => [0, 1, 2].map((entry) => axis && position(axis, entry));
  expect(places(lr)).toEqual([0, 1, expect.closeTo(0.5)]);
  expect(places(opt)).toEqual([1, 0, null]);
  expect(places(epochs)).toEqual([0.5, 0.5, 0.5]);
  expect(places(size)).toEqual([0, 0.5, 1]);
  expect(opt && valueAt(opt, 1)).toBe("sgd");
  expect(lr && valueAt(lr, 0.5)).toBeCloseTo(0.2);
});

test("a brush selects the entries within all ranges", () => {
  const axes = buildAxes(COMPARISON);
  const within = (ranges: Record<string, [number, number]>) =>
    [0, 1, 2].filter((entry) => isWithin(axes, ranges, entry));
  expect(within({})).toEqual([0, 1, 2]);
  expect(within({ "params.lr": [0.5, 1] })).toEqual([1, 2]);
  expect(within({ "params.lr": [0.5, 1], "params.opt": [0, 1] })).toEqual([1]);
  expect(within({ "params.gone": [0, 0.1] })).toEqual([0, 1, 2]);
});

test("a drag in any direction is a range, a click is none", () => {
  expect(brush(0.8, 0.2)).toEqual([0.2, 0.8]);
  expect(brush(-1, 2)).toEqual([0, 1]);
  expect(brush(0.985, 0.4)).toEqual([0.4, 1]);
  expect(brush(0.5, 0.5)).toBeNull();
});

test("an axis without values has no places", () => {
  const axis = buildAxis("params.x", "x", false, [null, null]);
  expect(position(axis, 0)).toBeNull();
  expect(varies(axis)).toBe(false);
});
