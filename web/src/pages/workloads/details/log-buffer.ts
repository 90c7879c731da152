/** The last lines of a log, whose parts arrive as they are printed. */
export interface LogBuffer {
  lines: readonly string[];
  /** The number of lines that were dropped from the start. */
  dropped: number;
}

export const EMPTY_LOG: LogBuffer = { lines: [""], dropped: 0 };
const MAX_LINES = 50_000;
const MAX_LINE = 20_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by them
const TERMINAL_CODES = /\u001b(\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(\u0007|\u001b\\)|[@-Z\\-_])/g;

/** Add a part. Its first line continues the last one; `\r` overwrites a line, as on a terminal. */
export function appendText({ lines, dropped }: LogBuffer, text: string): LogBuffer {
  const parts = text.replace(TERMINAL_CODES, "").replaceAll("\r\n", "\n").split("\n");
  const last = lines.at(-1) ?? "";
  const next = [...lines.slice(0, -1), last + parts[0], ...parts.slice(1)];
  for (let index = lines.length - 1; index < next.length; index += 1) {
    next[index] = overwrite(next[index] ?? "").slice(0, MAX_LINE);
  }
  const more = Math.max(0, next.length - MAX_LINES);
  return { lines: more ? next.slice(more) : next, dropped: dropped + more };
}

/** What remains of a progress bar: the text after the last `\r` that something follows. */
function overwrite(line: string): string {
  if (!line.includes("\r")) return line;
  return line.split("\r").filter(Boolean).at(-1) ?? "";
}
