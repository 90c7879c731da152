import { BOX, type Direction, type GraphLink, type GraphNode, type Rectangles } from "./graph";

export interface Size {
  width: number;
  height: number;
}
export interface Box extends Size {
  id: string;
}
export type Pairs = [source: string, target: string][];
/** Places boxes that contain no others; the corner of the whole is (0, 0). */
export type Engine = (
  boxes: Box[],
  links: Pairs,
  direction: Direction,
) => Promise<{ rectangles: Rectangles; size: Size }>;

/** Dagre takes seconds above this many boxes; ELK does not, but is a large file. */
const MAX_FOR_DAGRE = 200;
const PADDING = 16;
const HEADER = 34;

/**
 * The places of all nodes. Inner nodes of frames are placed first, so that each frame is a box of
 * known size for the frame around it. Coordinates are relative to the frame of a node, as xyflow
 * wants them.
 */
export async function arrange(
  nodes: GraphNode[],
  links: GraphLink[],
  direction: Direction,
  engine?: Engine,
): Promise<Rectangles> {
  const place = engine ?? (await loadEngine(nodes.length));
  const parents = new Map(nodes.map((node) => [node.id, node.parent]));
  const children = new Map<string | undefined, GraphNode[]>();
  for (const node of nodes) {
    const siblings = children.get(node.parent);
    if (siblings) siblings.push(node);
    else children.set(node.parent, [node]);
  }
  const pairs = liftLinks(links, parents);
  const all: Rectangles = new Map();

  async function placeInside(frame: string | undefined): Promise<Size> {
    const boxes: Box[] = [];
    for (const node of children.get(frame) ?? []) {
      if (!node.isFrame) boxes.push({ id: node.id, ...BOX });
      else boxes.push({ id: node.id, ...frameSize(await placeInside(node.id)) });
    }
    if (!boxes.length) return { width: BOX.width, height: 0 };
    const { rectangles, size } = await place(boxes, pairs.get(frame) ?? [], direction);
    const [left, top] = frame === undefined ? [0, 0] : [PADDING, HEADER];
    for (const [id, rectangle] of rectangles)
      all.set(id, { ...rectangle, x: rectangle.x + left, y: rectangle.y + top });
    return size;
  }

  await placeInside(undefined);
  return all;
}

function frameSize(inside: Size): Size {
  return { width: inside.width + 2 * PADDING, height: inside.height + HEADER + PADDING };
}

/** Links between siblings, by their frame: the ends are lifted to where both are in one frame. */
export function liftLinks(
  links: Pick<GraphLink, "source" | "target">[],
  parents: Map<string, string | undefined>,
): Map<string | undefined, Pairs> {
  const chain = (id: string) => {
    const found = [id];
    for (let parent = parents.get(id); parent !== undefined; parent = parents.get(parent))
      found.unshift(parent);
    return found;
  };
  const pairs = new Map<string | undefined, Pairs>();
  const seen = new Set<string>();
  for (const { source, target } of links) {
    if (!parents.has(source) || !parents.has(target)) continue;
    const [from, to] = [chain(source), chain(target)];
    let depth = 0;
    while (depth < from.length && depth < to.length && from[depth] === to[depth]) depth += 1;
    const [start, end] = [from[depth], to[depth]];
    if (start === undefined || end === undefined) continue; // a frame and what is in it
    const key = `${start}\n${end}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const frame = depth ? from[depth - 1] : undefined;
    const known = pairs.get(frame);
    if (known) known.push([start, end]);
    else pairs.set(frame, [[start, end]]);
  }
  return pairs;
}

async function loadEngine(count: number): Promise<Engine> {
  if (count <= MAX_FOR_DAGRE) return (await import("./dagre-engine")).placeWithDagre;
  return (await import("./elk-engine")).placeWithElk;
}

/** Relative places turned into places on the canvas. */
export function absoluteRectangles(nodes: GraphNode[], relative: Rectangles): Rectangles {
  const parents = new Map(nodes.map((node) => [node.id, node.parent]));
  const absolute: Rectangles = new Map();
  for (const [id, rectangle] of relative) {
    let { x, y } = rectangle;
    for (let parent = parents.get(id); parent !== undefined; parent = parents.get(parent)) {
      x += relative.get(parent)?.x ?? 0;
      y += relative.get(parent)?.y ?? 0;
    }
    absolute.set(id, { ...rectangle, x, y });
  }
  return absolute;
}
