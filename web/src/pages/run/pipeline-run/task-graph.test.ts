import { expect, test } from "vitest";
import { buildTaskGraph, type Task } from "./task-graph";

const SPEC = {
  root: {
    dag: {
      tasks: {
        prepare: { componentRef: { name: "comp-prepare" } },
        train: {
          componentRef: { name: "comp-train" },
          inputs: { artifacts: { data: { taskOutputArtifact: { producerTask: "prepare" } } } },
        },
        report: { componentRef: { name: "comp-report" }, dependentTasks: ["train", "loop"] },
        loop: {
          componentRef: { name: "comp-loop" },
          parameterIterator: { items: { raw: "[1,2]" } },
          dependentTasks: ["prepare"],
        },
      },
    },
  },
  components: {
    "comp-loop": {
      dag: {
        tasks: {
          first: { componentRef: { name: "comp-prepare" } },
          second: { componentRef: { name: "comp-prepare" }, dependentTasks: ["first"] },
        },
      },
    },
  },
};

function task(name: string, state: Task["state"] = "succeeded"): Task {
  return { id: `r1/${name}`, name, state, artifacts: {} } as unknown as Task;
}

test("shows tasks, those to come, and what waits for what", () => {
  const { nodes, links } = buildTaskGraph([task("prepare"), task("train", "running")], SPEC);
  expect(nodes.map(({ id, subtitle }) => [id, subtitle])).toEqual([
    ["prepare", "succeeded"],
    ["train", "running"],
    ["report", "not started"],
    ["loop", "not started"],
  ]);
  expect(links.map(({ id }) => id).sort()).toEqual([
    "loop > report",
    "prepare > loop",
    "prepare > train",
    "train > report",
  ]);
});

test("draws iterations as frames, with the links inside", () => {
  const tasks = [
    task("prepare"),
    task("loop/0/first"),
    task("loop/0/second", "failed"),
    task("loop/1/first", "running"),
  ];
  const { nodes, links } = buildTaskGraph(tasks, SPEC);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  expect(byId.get("loop")).toMatchObject({ isFrame: true, tone: "failure" });
  expect(byId.get("loop")?.subtitle).toBe("1 succeeded, 1 failed, 1 running");
  expect(byId.get("loop/0")).toMatchObject({ isFrame: true, parent: "loop", title: "iteration 1" });
  expect(byId.get("loop/1/second")).toMatchObject({ parent: "loop/1", subtitle: "not started" });
  expect(links.map(({ id }) => id)).toContain("loop/0/first > loop/0/second");
  expect(links.map(({ id }) => id)).toContain("prepare > loop");
});

test.each([[null], [{}], [{ root: 3, components: [] }]])(
  "without a pipeline (%j) there are no links",
  (spec) => {
    const { nodes, links } = buildTaskGraph([task("a"), task("group/b")], spec);
    expect(nodes.map(({ id }) => id)).toEqual(["a", "group", "group/b"]);
    expect(links).toEqual([]);
  },
);

test("states have icons of their own: colour alone does not tell them apart", () => {
  const states = ["succeeded", "reused", "failed", "skipped", "canceled", "running"] as const;
  const tasks = states.map((state) => task(state, state));
  const icons = buildTaskGraph(tasks, {}).nodes.map(({ icon }) => icon);
  expect(new Set(icons).size).toBe(states.length);
});
