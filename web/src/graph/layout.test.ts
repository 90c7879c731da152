import { File } from "lucide-react";
import { expect, test } from "vitest";
import { placeWithDagre } from "./dagre-engine";
import type { GraphNode } from "./graph";
import { absoluteRectangles, arrange, liftLinks } from "./layout";

const node = (id: string, more: Partial<GraphNode> = {}): GraphNode => ({
  id,
  title: id,
  kind: "file",
  icon: File,
  ...more,
});
const link = (source: string, target: string) => ({ id: `${source}-${target}`, source, target });

test("places a chain from left to right", async () => {
  const placed = await arrange(
    [node("a"), node("b"), node("c")],
    [link("a", "b"), link("b", "c")],
    "right",
    placeWithDagre,
  );
  const x = (id: string) => placed.get(id)?.x ?? Number.NaN;
  expect(x("a")).toBeLessThan(x("b"));
  expect(x("b")).toBeLessThan(x("c"));
});

test("gives frames room for what they contain, at any depth", async () => {
  const nodes = [
    node("outer", { isFrame: true }),
    node("inner", { isFrame: true, parent: "outer" }),
    node("a", { parent: "inner" }),
    node("b", { parent: "inner" }),
    node("c"),
  ];
  const links = [link("a", "b"), link("outer", "c")];
  const placed = await arrange(nodes, links, "down", placeWithDagre);
  const absolute = absoluteRectangles(nodes, placed);
  for (const [child, parent] of [
    ["a", "inner"],
    ["b", "inner"],
    ["inner", "outer"],
  ] as const) {
    const [inside, around] = [absolute.get(child), absolute.get(parent)];
    if (!inside || !around) throw new Error("not placed");
    expect(inside.x).toBeGreaterThanOrEqual(around.x);
    expect(inside.y + inside.height).toBeLessThanOrEqual(around.y + around.height);
  }
  const outer = absolute.get("outer");
  expect(absolute.get("c")?.y).toBeGreaterThanOrEqual((outer?.y ?? 0) + (outer?.height ?? 0));
});

test("survives loops, and links to nothing", async () => {
  const placed = await arrange(
    [node("a"), node("b")],
    [link("a", "b"), link("b", "a"), link("a", "gone")],
    "right",
    placeWithDagre,
  );
  expect(placed.size).toBe(2);
});

test("lifts links to the frame that has both ends", () => {
  const parents = new Map([
    ["f", undefined],
    ["a", "f"],
    ["b", "f"],
    ["c", undefined],
  ]);
  const lifted = liftLinks(
    [
      { source: "a", target: "b" },
      { source: "a", target: "c" },
      { source: "b", target: "c" },
      { source: "f", target: "a" },
    ],
    parents,
  );
  expect(lifted.get("f")).toEqual([["a", "b"]]);
  expect(lifted.get(undefined)).toEqual([["f", "c"]]);
});
