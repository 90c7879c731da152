/** The maths of parallel coordinates and scatter plots. */

import type { Schemas } from "@/api/client";
import type { Range } from "../search";

type Comparison = Schemas["ActivityComparison"];

/** A parameter or metric of all entries. */
export interface Axis {
  /** `params.NAME` or `metrics.NAME`. */
  id: string;
  label: string;
  isMetric: boolean;
  values: unknown[];
  /** Numbers have a scale; anything else has places of equal distance. */
  numbers: { least: number; greatest: number } | null;
  categories: string[];
}

export function buildAxes(comparison: Comparison): Axis[] {
  return comparison.sections
    .filter(({ name }) => name === "parameters" || name === "metrics")
    .flatMap(({ name, rows }) => {
      const isMetric = name === "metrics";
      return rows.map((row) =>
        buildAxis(`${isMetric ? "metrics" : "params"}.${row.name}`, row.name, isMetric, row.values),
      );
    });
}

export function buildAxis(id: string, label: string, isMetric: boolean, values: unknown[]): Axis {
  const given = values.filter((value) => value !== null && value !== undefined);
  const numeric = given.length > 0 && given.every((value) => typeof value === "number");
  const numbers = numeric
    ? {
        least: Math.min(...(given as number[])),
        greatest: Math.max(...(given as number[])),
      }
    : null;
  const categories = numbers ? [] : [...new Set(given.map(String))].sort();
  return { id, label, isMetric, values, numbers, categories };
}

/** Whether the entries that have a value do not all have the same. */
export function varies({ numbers, categories }: Axis): boolean {
  return numbers ? numbers.least !== numbers.greatest : categories.length > 1;
}

/** The axes of a plot for which nobody has chosen any: what varies, parameters first. */
export function defaultAxes(axes: Axis[], most = 8): string[] {
  const varying = axes.filter(varies);
  const parameters = varying.filter(({ isMetric }) => !isMetric);
  const metrics = varying.filter(({ isMetric }) => isMetric);
  const room = Math.max(most - parameters.length, Math.min(metrics.length, Math.ceil(most / 2)));
  const shown = [
    ...parameters.slice(0, most - Math.min(room, metrics.length)),
    ...metrics.slice(0, room),
  ];
  return shown.map(({ id }) => id);
}

/** Where the value of an entry is on its axis, from 0 to 1; null: it has none. */
export function position(axis: Axis, entry: number): number | null {
  const value = axis.values[entry];
  if (value === null || value === undefined) return null;
  if (axis.numbers) {
    const { least, greatest } = axis.numbers;
    return greatest === least ? 0.5 : ((value as number) - least) / (greatest - least);
  }
  const { categories } = axis;
  return categories.length === 1
    ? 0.5
    : categories.indexOf(String(value)) / (categories.length - 1);
}

/** The value, as a label, at a place of the axis. */
export function valueAt(axis: Axis, place: number): number | string {
  if (axis.numbers) {
    const { least, greatest } = axis.numbers;
    return least + place * (greatest - least);
  }
  return axis.categories[Math.round(place * (axis.categories.length - 1))] ?? "";
}

/** A margin, because a place is rounded in the URL. */
const MARGIN = 1e-3;

/** Whether an entry is within all ranges. One without a value is not within any. */
export function isWithin(axes: Axis[], ranges: Record<string, Range>, entry: number): boolean {
  return axes.every((axis) => {
    const range = Object.hasOwn(ranges, axis.id) ? ranges[axis.id] : undefined;
    if (!range) return true;
    const at = position(axis, entry);
    return at !== null && at >= range[0] - MARGIN && at <= range[1] + MARGIN;
  });
}

/** The ends of an axis are hard to hit: a place that is almost there is there. */
const SNAP = 0.03;

/** The range between two places where a pointer was; null if it has hardly moved. */
export function brush(from: number, to: number): Range | null {
  const clamp = (place: number) =>
    place < SNAP ? 0 : place > 1 - SNAP ? 1 : Math.round(place * 1000) / 1000;
  const range: Range = [clamp(Math.min(from, to)), clamp(Math.max(from, to))];
  return Math.abs(to - from) < 0.01 ? null : range;
}
