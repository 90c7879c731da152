import { describe, expect, it } from "vitest";
import { closeGroup, expand, openGroup, parseView, select, startAt, toggleKind } from "./view";

describe("the view in the URL", () => {
  it("keeps what it understands", () => {
    const view = {
      target: "e1:model.pkl",
      direction: "up",
      depth: 5,
      before: ["e1.p1"],
      hide: ["process"],
      since: "2026-11-18T10:00:00.000Z",
      as_of: "2026-11-19T10:00:00.000Z",
      all: true,
      node: "e1.p1",
      from: "e1.p1",
      to: "e1.p2",
      view: "table",
      sort: "size",
      descending: true,
      dialog: "compare",
    };
    expect(parseView(view)).toEqual(view);
  });

  it.each([
    { direction: "sideways" },
    { depth: 0 },
    { depth: 1e9 },
    { depth: 2 }, // the default
    { before: "e1" },
    { before: [1, null, ""] },
    { since: "yesterday" },
    { until: "2026-11-18T10:00" + " OR 1=1" },
    { all: "true" },
    { target: "" },
    { target: { toString: "x" } },
    { view: "pie" },
    { dialog: "delete" },
  ])("drops %j", (search) => {
    expect(parseView(search)).toEqual({});
  });

  it("takes a target that looks like a number", () => {
    expect(parseView({ target: 12 })).toEqual({ target: "12" });
  });
});

describe("changes of the view", () => {
  it("forgets what was expanded when it starts elsewhere, but not the filters", () => {
    const view = startAt({ target: "a", before: ["a"], hide: ["process"], to: "z" }, "b", "down");
    expect(parseView({ ...view })).toEqual({
      target: "b",
      direction: "down",
      hide: ["process"],
      node: "b",
    });
  });

  it("expands once", () => {
    const once = expand({ target: "a" }, "x", "after");
    expect(once).toEqual({ target: "a", after: ["x"], node: "x" });
    expect(expand(once, "x", "after")).toEqual(once);
  });

  it("opens a group by a member, and closes it by all of them", () => {
    const open = openGroup({ target: "a" }, "group:e1:/parts/1@1");
    expect(open.open).toEqual(["e1:/parts/1@1"]);
    const closed = closeGroup(
      open,
      "group:e1:/parts/0@1",
      new Set(["e1:/parts/0@1", "e1:/parts/1@1"]),
    );
    expect(closed).toEqual({ target: "a", open: undefined, node: "group:e1:/parts/0@1" });
  });

  it("toggles kinds", () => {
    const hidden = toggleKind({ target: "a" }, "process");
    expect(hidden.hide).toEqual(["process"]);
    expect(toggleKind(hidden, "process").hide).toBeUndefined();
  });

  it("takes the next selected node as the end of a path", () => {
    expect(select({ from: "a" }, "b")).toEqual({ from: "a", to: "b", node: "b" });
    expect(select({ from: "a" }, "a").to).toBeUndefined();
    expect(select({ from: "a" }, "group:b").to).toBeUndefined();
    expect(select({ from: "a", to: "b" }, "c").to).toBe("b");
  });
});
