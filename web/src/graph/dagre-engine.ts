import { graphlib, layout } from "@dagrejs/dagre";
import type { Rectangles } from "./graph";
import type { Engine } from "./layout";

const BETWEEN = 22;
const BETWEEN_RANKS = 64;

/** Lays out small graphs at once, in the page's own thread. */
export const placeWithDagre: Engine = async (boxes, links, direction) => {
  const graph = new graphlib.Graph();
  graph.setGraph({
    rankdir: direction === "right" ? "LR" : "TB",
    nodesep: BETWEEN,
    ranksep: BETWEEN_RANKS,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  for (const [source, target] of links) graph.setEdge(source, target);
  layout(graph);
  const rectangles: Rectangles = new Map();
  for (const { id, width, height } of boxes) {
    const { x, y } = graph.node(id) as { x: number; y: number };
    rectangles.set(id, { x: x - width / 2, y: y - height / 2, width, height });
  }
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { rectangles, size: { width, height } };
};
