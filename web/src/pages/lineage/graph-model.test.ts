import { describe, expect, it } from "vitest";
import { escapeXml, writeSvg } from "./export/svg";
import {
  type Box,
  buildGraphLinks,
  buildGraphNodes,
  findBox,
  findHighlighted,
  type LineageGraph,
  listNeighbours,
} from "./graph-model";
import { arrangeRows } from "./lineage-table";
import { listCommands, quote } from "./panel/commands";

function box(id: string, more: Partial<Box> = {}): Box {
  return {
    id,
    kind: "data",
    title: id,
    subtitle: "e1",
    marks: [],
    count: 1,
    members: [],
    frame: null,
    before: 0,
    after: 0,
    at: null,
    node: null,
    ...more,
  };
}

const GRAPH: LineageGraph = {
  target: "model",
  roots: ["model"],
  boxes: [
    box("raw", { marks: ["changed_outside"], before: 2 }),
    box("train", { kind: "process" }),
    box("model", { kind: "model", marks: ["target"] }),
    box("group:part1", { count: 7, members: ["part1", "part2"], after: 7 }),
    box("opened1", { frame: "group:opened1" }),
  ],
  arrows: [
    { from: "raw", to: "train", kinds: ["used"], count: 1, inferred: false, weak: false },
    { from: "train", to: "model", kinds: ["generated"], count: 1, inferred: false, weak: false },
    {
      from: "model",
      to: "group:part1",
      kinds: ["same_content"],
      count: 1,
      inferred: true,
      weak: true,
    },
  ],
  frames: [{ id: "group:opened1", kind: "data", title: "5 files", subtitle: "in /w", count: 5 }],
  kinds: [],
  earliest: null,
  latest: null,
  total: 12,
  filtered: 0,
  hidden_files: 0,
  path: null,
  gaps: [],
  missing: [],
  withheld: 0,
  truncated: false,
};

describe("the drawing", () => {
  it("has frames before what is in them, and says what can be followed", () => {
    const nodes = buildGraphNodes(GRAPH);
    expect(nodes[0]).toMatchObject({ id: "group:opened1", isFrame: true });
    expect(nodes.find(({ id }) => id === "opened1")?.parent).toBe("group:opened1");
    expect(nodes.find(({ id }) => id === "raw")).toMatchObject({
      subtitle: "changed outside Clew · e1",
      tone: "warning",
      more: { before: "2 more before" },
    });
    expect(nodes.find(({ id }) => id === "group:part1")).toMatchObject({ isPile: true });
  });

  it("shows what is inferred in another way", () => {
    expect(buildGraphLinks(GRAPH).map(({ dashed }) => dashed)).toEqual([false, false, true]);
  });

  it("highlights a path, or its ends if there is none", () => {
    expect(findHighlighted(GRAPH)).toBeNull();
    const path = { from: "raw", to: "model", boxes: ["raw", "train", "model"], shortest: [] };
    expect(findHighlighted({ ...GRAPH, path })).toEqual(new Set(["raw", "train", "model"]));
    expect(findHighlighted({ ...GRAPH, path: { ...path, boxes: [] } })).toEqual(
      new Set(["raw", "model"]),
    );
  });

  it("finds a node in its group", () => {
    expect(findBox(GRAPH, "part2")?.id).toBe("group:part1");
    expect(findBox(GRAPH, "nothing")).toBeNull();
  });

  it("lists neighbours on both sides", () => {
    expect(listNeighbours(GRAPH, "model", "before").map(({ box: { id } }) => id)).toEqual([
      "train",
    ]);
    expect(listNeighbours(GRAPH, "model", "after")).toMatchObject([{ isInferred: true }]);
  });
});

describe("the table", () => {
  it("keeps rows with all words, and sorts", () => {
    const ids = (filter?: string, sort?: string, descending?: boolean) =>
      arrangeRows(GRAPH.boxes, { filter, sort, descending }).map(({ id }) => id);
    expect(ids("PROCESS train")).toEqual(["train"]);
    expect(ids("changed clew")).toEqual(["raw"]);
    expect(ids("e", "title", true)[0]).toBe("train");
    expect(ids(undefined, "constructor")).toEqual(GRAPH.boxes.map(({ id }) => id));
  });
});

describe("the SVG", () => {
  it("is well-formed whatever the names are, and runs nothing", () => {
    const hostile = `<script>alert(1)</script>"&\u0000\ud800]]>`;
    const graph = { ...GRAPH, boxes: [box(hostile, { subtitle: hostile }), box("b")] };
    const places = new Map(
      [hostile, "b"].map((id, x) => [id, { x: x * 300, y: 0, width: 224, height: 54 }]),
    );
    const links = [{ id: "l", source: hostile, target: "b", dashed: true }];
    const text = writeSvg(hostile, buildGraphNodes({ ...graph, frames: [] }), links, places, null);
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
    expect(parsed.querySelector("parsererror")).toBeNull();
    expect(parsed.querySelector("script")).toBeNull();
    expect(parsed.querySelectorAll("path.inferred")).toHaveLength(1);
    expect(text).not.toMatch(/href|https?:\/\/(?!www\.w3\.org\/2000\/svg)/);
  });

  it("escapes markup", () => {
    expect(escapeXml(`a<b>&"c"`)).toBe("a&lt;b&gt;&amp;&quot;c&quot;");
  });
});

describe("commands", () => {
  it("quotes what a shell would change", () => {
    expect(quote("e1:/w/a.csv@1")).toBe("e1:/w/a.csv@1");
    expect(quote("a b'$(rm)")).toBe(`'a b'\\''$(rm)'`);
  });

  it("has none for groups", () => {
    expect(listCommands(box("group:x"))).toEqual([]);
  });
});
