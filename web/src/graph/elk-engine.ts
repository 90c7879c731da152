import ELK, { type ELK as Elk, type ElkNode } from "elkjs/lib/elk-api";
// ELK has its own licence: it stays a file of its own, as it was published.
import workerUrl from "elkjs/lib/elk-worker.min.js?url";
import type { Rectangles } from "./graph";
import type { Engine } from "./layout";

let elk: Elk | null = null;

/** Lays out large graphs in a worker, so that the page stays responsive. */
export const placeWithElk: Engine = async (boxes, links, direction) => {
  elk ??= new ELK({ workerFactory: () => new Worker(workerUrl) });
  const graph: ElkNode = {
    id: "root",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": direction === "right" ? "RIGHT" : "DOWN",
      "elk.layered.thoroughness": "1",
      // Only the boxes are placed by ELK; routing links and a last search for crossings would take
      // two thirds of the time.
      "elk.edgeRouting": "POLYLINE",
      "elk.layered.crossingMinimization.greedySwitch.type": "OFF",
      "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
      "elk.layered.spacing.nodeNodeBetweenLayers": "64",
      "elk.spacing.nodeNode": "22",
      "elk.padding": "[top=0,left=0,bottom=0,right=0]",
    },
    children: boxes,
    edges: links.map(([source, target], index) => ({
      id: `l${index}`,
      sources: [source],
      targets: [target],
    })),
  };
  const root: ElkNode = await elk.layout(graph);
  const rectangles: Rectangles = new Map();
  for (const { id, x = 0, y = 0, width = 0, height = 0 } of root.children ?? [])
    rectangles.set(id, { x, y, width, height });
  return { rectangles, size: { width: root.width ?? 0, height: root.height ?? 0 } };
};
