const DIGITS = 5;

/** At most five digits that count: `0.91234`, `1.2e-7`, `12,345,678`. */
export function formatNumber(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en-US");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9))
    return value.toExponential(3).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(Math.max(DIGITS, Math.ceil(Math.log10(size + 1))))));
}

/** A number, text or boolean of a record; `–` for nothing. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") {
    return Number.isInteger(value) ? String(value) : formatNumber(value);
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}
