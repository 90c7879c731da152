import { expect, test } from "vitest";
import { formatCell, readParquet } from "./parquet";

// Written by pyarrow with Snappy: a null, dates and lists.
const FILE =
  "UEFSMRUEFTAVLkwVBhUAEgAAGAQBAAkBPAIAAAAAAAAAAwAAAAAAAAAVABUUFRgsFQYVEBUGFQYcAAAACiQC" +
  "AAAABgECAyQAFQQVIBUkTBUEFQASAAAQPAAAAAAAAB5AAAAAAACAKEAVABUSFRYsFQYVEBUGFQYcAAAACSAC" +
  "AAAAAwUBAwIVBBUgFSRMFQQVABIAABA8BAAAAGNhc2gEAAAAY2FyZBUAFRIVFiwVBhUQFQYVBhwAAAAJIAIA" +
  "AAAGAQEDBhUEFQgVDEwVAhUAEgAABAzqTwAAFQAVEhUWLBUGFRAVBhUGHAAAAAkgAgAAAAYBAQYAFQQVHhUi" +
  "TBUGFQASAAAPOAEAAABhAQAAAGIBAAAAYxUAFSIVJiwVCBUQFQYVBhwAAAARQAIAAAADCAMAAAAD9wACAyQA" +
  "FQQZjDUAGAZzY2hlbWEVCgAVBCUCGAR0cmlwABUKJQIYBGZhcmUAFQwlAhgEcGFpZCUATBwAAAAVAiUCGANk" +
  "YXklDExsAAAANQIYBHRhZ3MVAhUGTDwAAAA1BBgEbGlzdBUCABUMJQIYB2VsZW1lbnQlAEwcAAAAFgYZHBlc" +
  "JgAcFQQZNQAGEBkYBHRyaXAVAhYGFoYBFogBJlImCCksFQQVABUCABUAFRAVAgA8KQYZJgAGAAAAJgAcFQoZ" +
  "NQAGEBkYBGZhcmUVAhYGFnQWfCbQASaQASksFQQVABUCABUAFRAVAgA8KQYZJgIEAAAAJgAcFQwZNQAGEBkY" +
  "BHBhaWQVAhYGFnQWfCbMAiaMAiksFQQVABUCABUAFRAVAgA8FhgZBhkmAAYAAAAmABwVAhk1AAYQGRgDZGF5" +
  "FQIWBhZcFmQmsAMmiAMpLBUEFQAVAgAVABUQFQIAPCkGGSYABgAAACYAHBUMGTUABhAZOAR0YWdzBGxpc3QH" +
  "ZWxlbWVudBUCFggWggEWigEmqgQm7AMpLBUEFQAVAgAVABUQFQIAPBYGGSYGAhlGAAIABgAAABbMBBYGJggW" +
  "7gQAKCBwYXJxdWV0LWNwcC1hcnJvdyB2ZXJzaW9uIDI2LjAuMRlcHAAAHAAAHAAAHAAAHAAAAPABAABQQVIx";

function decode(text: string): ArrayBuffer {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
}

test("the first rows, as text", async () => {
  const { columns, rows, total, hidden } = await readParquet(decode(FILE));
  expect(columns).toEqual(["trip", "fare", "paid", "day", "tags"]);
  expect(rows).toEqual([
    ["1", "7.5", "cash", "2026-01-05", '["a"]'],
    ["2", "", "card", "2026-01-05", "[]"],
    ["3", "12.25", "card", "2026-01-05", '["b","c"]'],
  ]);
  expect([total, hidden]).toEqual([3, 0]);
});

test("what is no Parquet is refused in words", async () => {
  await expect(readParquet(decode(btoa("PAR1, but not more")))).rejects.toThrow("cannot be shown");
  await expect(readParquet(new ArrayBuffer(0))).rejects.toThrow("cannot be shown");
});

test("cells are short texts", () => {
  expect(formatCell({ a: 1n })).toBe('{"a":"1"}');
  expect(formatCell(new Uint8Array(7))).toBe("7 bytes");
  expect(formatCell("x".repeat(1000))).toHaveLength(301);
  expect(formatCell(new Date(Number.NaN))).toBe("");
});
