import { type Edge, MarkerType, type Node } from "@xyflow/react";
import type { BoxData } from "./box";
import type { GraphLink, GraphNode, Rectangles } from "./graph";

interface Marks {
  selected: string | null;
  focusable: string | null;
  highlighted: ReadonlySet<string> | null;
}

/** What xyflow draws of the nodes that have a place; frames come before what is in them. */
export function buildNodes(
  nodes: GraphNode[],
  rectangles: Rectangles | null,
  marks: Marks,
): Node<BoxData>[] {
  const made: Node<BoxData>[] = [];
  for (const node of nodes) {
    const place = rectangles?.get(node.id);
    if (!place) continue;
    const parent =
      node.parent !== undefined && rectangles?.has(node.parent) ? node.parent : undefined;
    made.push({
      id: node.id,
      type: "box",
      position: { x: place.x, y: place.y },
      width: place.width,
      height: place.height,
      parentId: parent,
      data: {
        node,
        isSelected: node.id === marks.selected,
        isFocusable: node.id === marks.focusable,
        emphasis: marks.highlighted ? (marks.highlighted.has(node.id) ? "on" : "off") : "none",
      },
    });
  }
  return sortFramesFirst(made);
}

function sortFramesFirst(nodes: Node<BoxData>[]): Node<BoxData>[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const depth = (node: Node<BoxData>): number => {
    const parent = node.parentId === undefined ? undefined : byId.get(node.parentId);
    return parent ? depth(parent) + 1 : 0;
  };
  return nodes
    .map((node): [number, Node<BoxData>] => [depth(node), node])
    .sort(([a], [b]) => a - b)
    .map(([, node]) => node);
}

export function buildEdges(
  links: GraphLink[],
  rectangles: Rectangles | null,
  highlighted: ReadonlySet<string> | null,
  selected: string | null,
): Edge[] {
  return links
    .filter(({ source, target }) => rectangles?.has(source) && rectangles.has(target))
    .map((link) => {
      const isOn = highlighted
        ? highlighted.has(link.source) && highlighted.has(link.target)
        : link.source === selected || link.target === selected;
      return {
        id: link.id,
        source: link.source,
        target: link.target,
        className: [isOn ? "on" : highlighted ? "off" : "", link.dashed ? "dashed" : ""].join(" "),
        markerEnd: {
          type: MarkerType.ArrowClosed,
          markerUnits: "userSpaceOnUse",
          width: 20,
          height: 20,
        },
        // Links of what is selected lie above the others, and above the frames.
        zIndex: isOn ? 2 : 1,
      };
    });
}
