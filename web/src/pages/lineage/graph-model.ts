import type { Schemas } from "@/api/client";
import { describeKind } from "@/components/kinds";
import type { GraphLink, GraphNode, Side } from "@/graph/graph";

export type LineageGraph = Schemas["LineageGraph"];
export type Box = Schemas["LineageBox"];

/** What each mark says, in the order in which the first one is shown. */
export const MARKS: Partial<Record<Box["marks"][number], string>> = {
  changed_outside: "changed outside Clew",
  gap: "not fully observed",
  same_content: "same content as an earlier file",
  made_elsewhere: "recorded elsewhere",
};

const SIDES: Side[] = ["before", "after"];

/** The boxes and frames of a lineage as nodes of a drawing. */
export function buildGraphNodes(graph: LineageGraph): GraphNode[] {
  const frames = graph.frames.map((frame): GraphNode => {
    const kind = describeKind(frame.kind);
    return {
      id: frame.id,
      title: frame.title,
      subtitle: frame.subtitle,
      kind: `Open group of ${kind.plural}`,
      icon: kind.icon,
      tone: kind.tone,
      isFrame: true,
    };
  });
  return [...frames, ...graph.boxes.map(buildNode)];
}

function buildNode(box: Box): GraphNode {
  const kind = describeKind(box.kind);
  const mark = firstMark(box);
  const more: GraphNode["more"] = {};
  for (const side of SIDES)
    if (box[side]) more[side] = `${box[side]} more ${side === "before" ? "before" : "after"}`;
  return {
    id: box.id,
    title: box.title,
    subtitle: [mark, box.subtitle].filter(Boolean).join(" · "),
    kind: box.count > 1 ? `Group of ${kind.plural}` : kind.label,
    icon: kind.icon,
    tone: isBroken(box) ? "warning" : box.marks.includes("target") ? "accent" : kind.tone,
    parent: box.frame ?? undefined,
    isPile: box.count > 1,
    more,
  };
}

export function firstMark(box: Box): string | null {
  for (const [mark, words] of Object.entries(MARKS))
    if (box.marks.includes(mark as Box["marks"][number])) return words;
  return null;
}

/** Whether the chain of what was observed has a break here. */
export function isBroken(box: Box): boolean {
  return box.marks.includes("changed_outside") || box.marks.includes("gap");
}

export function buildGraphLinks(graph: LineageGraph): GraphLink[] {
  return graph.arrows.map((arrow) => ({
    id: `${arrow.from}\n${arrow.to}`,
    source: arrow.from,
    target: arrow.to,
    dashed: arrow.inferred,
  }));
}

/** What is highlighted: the boxes on all ways between the two ends of the path. */
export function findHighlighted(graph: LineageGraph): ReadonlySet<string> | null {
  if (!graph.path) return null;
  const { from, to, boxes } = graph.path;
  return new Set(boxes.length ? boxes : [from, to]);
}

/** The box that shows a node: its own, or its group. */
export function findBox(graph: LineageGraph, id: string | undefined): Box | null {
  if (!id) return null;
  return (
    graph.boxes.find((box) => box.id === id) ??
    graph.boxes.find((box) => box.members.includes(id)) ??
    null
  );
}

export interface Neighbour {
  box: Box;
  kinds: string[];
  isInferred: boolean;
}

/** What a box was made from, or what was made from it, as far as it is drawn. */
export function listNeighbours(graph: LineageGraph, id: string, side: Side): Neighbour[] {
  const boxes = new Map(graph.boxes.map((box) => [box.id, box]));
  return graph.arrows.flatMap((arrow) => {
    const [here, there] = side === "before" ? [arrow.to, arrow.from] : [arrow.from, arrow.to];
    const box = here === id ? boxes.get(there) : undefined;
    return box ? [{ box, kinds: arrow.kinds, isInferred: arrow.inferred }] : [];
  });
}

const KINDS: Record<string, string> = {
  used: "read by",
  generated: "written by",
  informed: "passed data to",
  part: "part of",
  same_content: "same content, inferred",
  through: "through things that are filtered out",
};

/** How data flowed, in words. */
export function describeFlow(kinds: string[]): string {
  return kinds.map((kind) => KINDS[kind] ?? kind).join(", ");
}
