/** The lines of a log, by the blocks that the server divides it into. */
export interface LogIndex {
  attempt: string;
  complete: boolean;
  lines: number;
  size: number;
  /** The first line and the first byte of each block. */
  blocks: [line: number, offset: number][];
}

/** The block that contains a line. */
export function findBlock(blocks: LogIndex["blocks"], line: number): number {
  let [low, high] = [0, blocks.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((blocks[middle]?.[0] ?? 0) <= line) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The blocks that contain the lines from `first` to before `end`. */
export function blocksOf(blocks: LogIndex["blocks"], first: number, end: number): number[] {
  if (!blocks.length || end <= first) return [];
  const start = findBlock(blocks, first);
  const stop = findBlock(blocks, end - 1);
  return Array.from({ length: stop - start + 1 }, (_, number) => start + number);
}

/** Join what was known with an answer that begins at the block `first`. */
export function joinIndex(before: LogIndex | undefined, next: LogIndex, first: number): LogIndex {
  if (!before || before.attempt !== next.attempt || first === 0) return next;
  return { ...next, blocks: [...before.blocks.slice(0, first), ...next.blocks] };
}

/** The lines of a block's text. A line of a progress bar is what it shows at last. */
export function splitLines(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => {
    const shown = line.endsWith("\r") ? line.slice(0, -1) : line;
    return shown.slice(shown.lastIndexOf("\r") + 1);
  });
}

export const LINE_HEIGHT = 20;
/** Browsers cannot make elements much higher. */
const MAX_HEIGHT = 8_000_000;

/**
 * A scroll bar for any number of lines: above some height, each pixel of it stands for several
 * pixels of the log.
 */
export class ScrollScale {
  readonly height: number;
  readonly logHeight: number;
  private readonly factor: number;

  constructor(lines: number, view: number) {
    this.logHeight = Math.max(lines * LINE_HEIGHT, view);
    this.height = Math.min(this.logHeight, MAX_HEIGHT);
    const range = Math.max(1, this.height - view);
    this.factor = Math.max(1, (this.logHeight - view) / range);
  }

  /** Whether a pixel of the bar is more than a pixel of the log. */
  get isCoarse(): boolean {
    return this.factor > 1;
  }
  toLog(scrollTop: number): number {
    return scrollTop * this.factor;
  }
  toBar(top: number): number {
    return top / this.factor;
  }
}
