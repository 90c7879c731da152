import { expect, test } from "vitest";
import { readableCondition } from "./conditions";
import { buildPipelineGraph, readTasks } from "./pipeline-graph";

const leaf = { executorLabel: "exec-step" };
const ref = (name: string, more = {}) => ({ componentRef: { name }, ...more });
const input = (producerTask: string) => ({
  inputs: { artifacts: { data: { taskOutputArtifact: { producerTask, outputArtifactKey: "d" } } } },
});
const group = (tasks: Record<string, unknown>) => ({ dag: { tasks } });

const spec = {
  components: {
    "comp-step": leaf,
    "comp-import": { executorLabel: "exec-import" },
    "comp-tool": { executorLabel: "exec-tool" },
    "comp-loop": group({ train: ref("comp-step"), judge: ref("comp-step", input("train")) }),
    "comp-condition": group({ "for-loop-2": ref("comp-loop") }),
    "comp-branches": group({
      "condition-2": ref("comp-condition", { triggerPolicy: { condition: "x" } }),
    }),
    "comp-handler": group({ risky: ref("comp-step") }),
    "comp-itself": group({ again: ref("comp-itself") }),
  },
  deploymentSpec: {
    executors: {
      "exec-step": {
        container: {
          image: "python:3.11",
          command: ["sh", "-c", "pip install 'numpy==1.26'  &&  true", "def step(): ..."],
          args: ["--executor_input", "{{$}}", "--function_to_execute", "step"],
        },
      },
      "exec-import": { importer: { artifactUri: { constant: "s3://b/data.csv" } } },
      "exec-tool": { container: { image: "busybox", command: ["sort"], args: ["-r"] } },
    },
  },
  root: {
    dag: {
      tasks: {
        load: ref("comp-import"),
        sort: ref("comp-tool", input("load")),
        "for-loop-1": ref("comp-loop", {
          dependentTasks: ["sort"],
          parameterIterator: { itemInput: "i", items: { raw: "[1, 2, 3]" } },
          iteratorPolicy: { parallelismLimit: 2 },
        }),
        "for-loop-3": ref("comp-loop", {
          parameterIterator: {
            itemInput: "i",
            items: { inputParameter: "pipelinechannel--sort-Output" },
          },
        }),
        "condition-1": ref("comp-condition", {
          dependentTasks: ["sort"],
          triggerPolicy: {
            condition: "inputs.parameter_values['pipelinechannel--sort-Output'] == 'heads'",
          },
        }),
        "condition-branches-1": ref("comp-branches"),
        "exit-handler-1": ref("comp-handler"),
        report: ref("comp-step", {
          dependentTasks: ["exit-handler-1"],
          triggerPolicy: { strategy: "ALL_UPSTREAM_TASKS_COMPLETED" },
          inputs: {
            parameters: { status: { taskFinalStatus: { producerTask: "exit-handler-1" } } },
          },
        }),
      },
    },
  },
};
const tasks = readTasks(spec);

test("knows what each task is", () => {
  const kinds = Object.fromEntries([...tasks.values()].map(({ id, kind }) => [id, kind]));
  expect(kinds).toMatchObject({
    load: "importer",
    sort: "container",
    "for-loop-1": "loop",
    "for-loop-1/train": "Python function",
    "condition-1": "condition",
    "condition-1/for-loop-2": "pipeline",
    "condition-branches-1": "condition",
    "condition-branches-1/condition-2": "condition",
    "exit-handler-1": "exit handler",
    report: "Python function",
  });
  const summary = (id: string) => tasks.get(id)?.summary;
  expect(summary("load")).toBe("s3://b/data.csv");
  expect(summary("sort")).toBe("busybox");
  expect(summary("for-loop-1")).toBe("for each of 3 items, 2 at a time");
  expect(summary("for-loop-3")).toBe("for each item of sort.Output");
  expect(summary("condition-1")).toBe("if sort.Output == 'heads'");
  expect(summary("report")).toBe("runs even if others failed");
  expect(summary("for-loop-1/train")).toBe("numpy==1.26");
});

test("draws open groups as frames, with links between tasks of a group", () => {
  const { nodes, links } = buildPipelineGraph(tasks, new Set());
  const frame = nodes.find((node) => node.id === "for-loop-1");
  expect(frame).toMatchObject({ isFrame: true, parent: undefined });
  expect(nodes.find((node) => node.id === "for-loop-1/judge")?.parent).toBe("for-loop-1");
  const pairs = links.map(({ source, target }) => `${source} ${target}`);
  expect(pairs).toContain("load sort");
  expect(pairs).toContain("sort for-loop-1");
  expect(pairs).toContain("for-loop-1/train for-loop-1/judge");
  expect(pairs).toContain("condition-1/for-loop-2/train condition-1/for-loop-2/judge");
  expect(links.find((link) => link.target === "report")).toMatchObject({
    source: "exit-handler-1",
    dashed: true,
  });
  expect(pairs.filter((pair) => pair.endsWith(" report"))).toHaveLength(1);
});

test("closes groups, and says how many tasks they hide", () => {
  const { nodes, links } = buildPipelineGraph(tasks, new Set(["for-loop-1", "condition-1"]));
  const ids = nodes.map((node) => node.id);
  expect(ids).not.toContain("for-loop-1/train");
  expect(ids).not.toContain("condition-1/for-loop-2/train");
  const closed = nodes.find((node) => node.id === "for-loop-1");
  expect(closed?.isFrame).toBe(false);
  expect(closed?.subtitle).toBe("2 tasks · for each of 3 items, 2 at a time");
  expect(closed?.more?.after).toBeTruthy();
  expect(links.every((link) => ids.includes(link.target))).toBe(true);
});

test("closes all groups of a large pipeline at first", () => {
  const many = Object.fromEntries(
    Array.from({ length: 70 }, (_, n) => [`t${n}`, ref("comp-step")]),
  );
  const large = { ...spec, root: { dag: { tasks: { ...many, "for-loop-1": ref("comp-loop") } } } };
  const read = readTasks(large);
  expect(buildPipelineGraph(read, new Set()).nodes).toHaveLength(71);
  expect(buildPipelineGraph(read, new Set(["for-loop-1"])).nodes).toHaveLength(73);
});

test("ends at components that contain themselves, and takes anything", () => {
  const endless = { ...spec, root: { dag: { tasks: { first: ref("comp-itself") } } } };
  expect(readTasks(endless).size).toBeLessThan(40);
  for (const strange of [null, [], { root: { dag: { tasks: { a: null, b: [] } } } }])
    expect(buildPipelineGraph(readTasks(strange), new Set()).links).toEqual([]);
});

test("writes conditions as people do", () => {
  expect(
    readableCondition("int(inputs.parameter_values['pipelinechannel--n']) > 3 && !(x == 'a')"),
  ).toBe("n > 3 and not (x == 'a')");
});
