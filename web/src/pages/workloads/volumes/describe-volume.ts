import { ACCESS_MODES } from "../notebooks/form/volume-choice";
import { formatQuantity } from "../notebooks/format-resources";

const FACTORS: Record<string, number> = {
  "": 1,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
};

export function describeSize(capacity: string | null): string {
  return capacity === null ? "–" : formatQuantity(capacity);
}

/** For sorting: `500Mi` is less than `1Gi`. */
export function sizeInBytes(capacity: string | null): number {
  const found = /^([\d.]+)([A-Za-z]*)$/.exec(capacity ?? "");
  return found ? Number(found[1]) * (FACTORS[found[2] ?? ""] ?? 1) : 0;
}

export function describeModes(modes: readonly string[]): string[] {
  return modes.map((mode) => ACCESS_MODES[mode] ?? mode);
}
