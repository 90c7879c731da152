import type { Rectangle } from "./graph";

interface Size {
  width: number;
  height: number;
}

export interface Viewport {
  x: number;
  y: number;
  zoom: number;
}

const MARGIN = 24;
/** Pixels that the toolbar covers. */
const TOP = 64;

/**
 * The part of a graph around one box. It does not reach beyond the graph: where the box is at the
 * edge, the window shows more of the other side.
 */
export function frameAround(
  box: Rectangle,
  boxes: Rectangle[],
  { width, height }: Size,
  zoom: number,
): Viewport {
  const left = Math.min(...boxes.map(({ x }) => x)) * zoom;
  const right = Math.max(...boxes.map((one) => one.x + one.width)) * zoom;
  const top = Math.min(...boxes.map(({ y }) => y)) * zoom;
  const bottom = Math.max(...boxes.map((one) => one.y + one.height)) * zoom;
  return {
    x: place((box.x + box.width / 2) * zoom, left, right, MARGIN, width - MARGIN),
    y: place((box.y + box.height / 2) * zoom, top, bottom, TOP, height - MARGIN),
    zoom,
  };
}

/** How far to move what lies between `start` and `end`, for the `middle` to be seen. */
function place(middle: number, start: number, end: number, from: number, to: number): number {
  if (end - start <= to - from) return (from + to - start - end) / 2;
  return Math.min(from - start, Math.max(to - end, (from + to) / 2 - middle));
}
