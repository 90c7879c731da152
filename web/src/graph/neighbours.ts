import type { GraphLink, Rectangles } from "./graph";

export type ArrowKey = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

const VECTORS: Record<ArrowKey, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
/** What is off the axis counts more than what is far along it. */
const OFF_AXIS = 2.5;

export function isArrowKey(key: string): key is ArrowKey {
  return key in VECTORS;
}

/**
 * The box that an arrow key leads to: the nearest in that direction, linked ones before others.
 * Without any, null.
 */
export function findNeighbour(
  from: string,
  key: ArrowKey,
  rectangles: Rectangles,
  links: GraphLink[],
): string | null {
  const start = rectangles.get(from);
  if (!start) return null;
  const linked = new Set(
    links.flatMap(({ source, target }) =>
      source === from ? [target] : target === from ? [source] : [],
    ),
  );
  const [dx, dy] = VECTORS[key];
  let best: [linked: boolean, distance: number, id: string] | null = null;
  for (const [id, rectangle] of rectangles) {
    if (id === from) continue;
    const x = rectangle.x + rectangle.width / 2 - start.x - start.width / 2;
    const y = rectangle.y + rectangle.height / 2 - start.y - start.height / 2;
    const along = x * dx + y * dy;
    if (along <= 1) continue;
    const distance = along + OFF_AXIS * Math.abs(x * dy + y * dx);
    const isLinked = linked.has(id);
    if (!best || (isLinked !== best[0] ? isLinked : distance < best[1]))
      best = [isLinked, distance, id];
  }
  return best?.[2] ?? null;
}
