/** The maths of curves: smoothing, logarithms, and putting several over one axis. */

export type Point = readonly [number, number | null];

/**
 * An exponential moving average, as TensorBoard's: without the bias towards zero at the beginning.
 * Gaps stay gaps.
 */
export function smooth(values: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...values];
  let last = 0;
  let count = 0;
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    last = last * weight + (1 - weight) * value;
    count += 1;
    return last / (1 - weight ** count);
  });
}

/** Logarithmic axes have no place for what is not positive. */
export function onlyPositive(values: readonly (number | null)[]): (number | null)[] {
  return values.map((value) => (value !== null && value > 0 ? value : null));
}

/**
 * The points of several curves over one ascending axis: undefined where a curve has no point. Of
 * several points at one step, which a program writes that was started again, the last one counts.
 */
export function align(curves: readonly (readonly Point[])[]): {
  steps: number[];
  values: (number | null | undefined)[][];
} {
  const steps = [...new Set(curves.flatMap((points) => points.map(([step]) => step)))];
  steps.sort((a, b) => a - b);
  const places = new Map(steps.map((step, at) => [step, at]));
  const values = curves.map((points) => {
    const column: (number | null | undefined)[] = new Array(steps.length).fill(undefined);
    for (const [step, value] of points) column[places.get(step) as number] = value;
    return column;
  });
  return { steps, values };
}

/** Where a value is between the least and the greatest, from 0 to 1. */
export function scale(value: number, least: number, greatest: number, log = false): number {
  if (greatest === least) return 0.5;
  if (log && least > 0) {
    return Math.log(value / least) / Math.log(greatest / least);
  }
  return (value - least) / (greatest - least);
}
