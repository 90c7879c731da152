import { Boxes, CircleDashed, type LucideIcon, Repeat2, Split } from "lucide-react";
import type { Schemas } from "@/api/client";
import { stateIcon } from "@/components/state-badge";
import type { GraphLink, GraphNode, Tone } from "@/graph/graph";

export type Task = Schemas["Task"];
type Fields = Record<string, unknown>;

export interface TaskGraph {
  nodes: GraphNode[];
  links: GraphLink[];
}

const TONES: Record<string, Tone> = {
  running: "running",
  succeeded: "success",
  reused: "success",
  failed: "failure",
  canceled: "warning",
};
/** Instances of a loop that are drawn one by one; of more, those that failed or run come first. */
const MAX_DEPTH = 12;

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

interface Group {
  /** The tasks of the group's component, from the compiled pipeline. */
  dag: Fields;
  isLoop: boolean;
  isCondition: boolean;
}

/** The components and the root of a compiled pipeline, as far as a graph needs them. */
class Spec {
  private readonly components: Fields;
  private readonly root: Fields;

  constructor(spec: unknown) {
    const found = fields(spec);
    this.components = fields(found.components);
    this.root = fields(fields(fields(found.root).dag).tasks);
  }

  /** The tasks in the group of this name, such as `for-loop-1/0`. */
  tasksOf(path: string[]): Fields {
    let tasks = this.root;
    for (const part of path) {
      if (/^\d+$/.test(part) && !(part in tasks)) continue; // an iteration of a loop
      tasks = fields(fields(this.component(fields(tasks[part])).dag).tasks);
    }
    return tasks;
  }

  groupOf(task: Fields): Group | null {
    const { dag } = this.component(task);
    if (!dag) return null;
    return {
      dag: fields(fields(dag).tasks),
      isLoop: Boolean(task.parameterIterator ?? task.artifactIterator),
      isCondition: Boolean(fields(task.triggerPolicy).condition),
    };
  }

  private component(task: Fields): Fields {
    return fields(this.components[String(fields(task.componentRef).name)]);
  }
}

/** The tasks that a task waits for: those whose outputs it takes, and those it was told to follow. */
function dependencies(task: Fields): string[] {
  const inputs = fields(task.inputs);
  const sources = [
    ...Object.values(fields(inputs.parameters)),
    ...Object.values(fields(inputs.artifacts)),
  ];
  const producers = sources.flatMap((input) => {
    const found = fields(input);
    const output = fields(
      found.taskOutputParameter ?? found.taskOutputArtifact ?? found.taskFinalStatus,
    );
    return typeof output.producerTask === "string" ? [output.producerTask] : [];
  });
  return [...new Set([...list(task.dependentTasks).map(String), ...producers])];
}

/**
 * The graph of a run: every task that the record has, the groups around them, and tasks that are
 * still to come. Links are those of the compiled pipeline; without one there are none.
 */
export function buildTaskGraph(tasks: readonly Task[], compiled: unknown): TaskGraph {
  const spec = new Spec(compiled);
  const known = new Map(tasks.map((task) => [task.name, task]));
  const nodes = new Map<string, GraphNode>();
  const links: GraphLink[] = [];

  function addFrame(path: string[]): string | undefined {
    if (!path.length) return undefined;
    const id = path.join("/");
    if (!nodes.has(id)) {
      const parent = addFrame(path.slice(0, -1));
      const last = path.at(-1) ?? "";
      const isIteration = /^\d+$/.test(last);
      nodes.set(id, {
        id,
        title: isIteration ? `iteration ${Number(last) + 1}` : last,
        kind: isIteration ? "iteration" : "group",
        icon: isIteration ? Repeat2 : iconOfGroup(spec, path),
        parent,
        isFrame: true,
      });
    }
    return id;
  }

  for (const task of tasks) {
    const path = task.name.split("/").slice(0, MAX_DEPTH);
    const parent = addFrame(path.slice(0, -1));
    nodes.set(task.name, taskNode(task, parent));
  }
  const groups = new Set([...nodes.values()].map(({ parent }) => parent ?? ""));
  for (const group of groups) {
    const path = group ? group.split("/") : [];
    const isLoop =
      path.length > 0 &&
      [...nodes.values()].some(({ parent, kind }) => parent === group && kind === "iteration");
    if (isLoop) continue; // its members are iterations
    const prefix = group ? `${group}/` : "";
    for (const [name, described] of Object.entries(spec.tasksOf(path))) {
      const id = `${prefix}${name}`;
      if (!nodes.has(id)) {
        const inner = spec.groupOf(fields(described));
        nodes.set(id, plannedNode(id, name, group || undefined, inner));
      }
      for (const before of dependencies(fields(described)))
        links.push({ id: `${prefix}${before} > ${id}`, source: `${prefix}${before}`, target: id });
    }
  }
  const drawn = links.filter(({ source, target }) => nodes.has(source) && nodes.has(target));
  for (const node of nodes.values()) if (node.isFrame) describeFrame(node, known);
  return { nodes: [...nodes.values()], links: drawn };
}

function iconOfGroup(spec: Spec, path: string[]): LucideIcon {
  const group = spec.groupOf(fields(spec.tasksOf(path.slice(0, -1))[path.at(-1) ?? ""]));
  return group?.isLoop ? Repeat2 : group?.isCondition ? Split : Boxes;
}

function taskNode(task: Task, parent: string | undefined): GraphNode {
  return {
    id: task.name,
    title: task.name.split("/").at(-1) ?? task.name,
    subtitle: task.state,
    kind: "task",
    icon: stateIcon(task.state),
    tone: TONES[task.state] ?? "neutral",
    parent,
  };
}

function plannedNode(
  id: string,
  title: string,
  parent: string | undefined,
  inner: Group | null,
): GraphNode {
  const icon = inner?.isLoop ? Repeat2 : inner?.isCondition ? Split : inner ? Boxes : CircleDashed;
  return {
    id,
    title,
    subtitle: "not started",
    kind: inner ? "group" : "task",
    icon,
    tone: "neutral",
    parent,
  };
}

/** Say how the tasks in a frame went: its state is that of the worst. */
function describeFrame(node: GraphNode, known: Map<string, Task>): void {
  const prefix = `${node.id}/`;
  const counts = new Map<string, number>();
  for (const [name, task] of known)
    if (name.startsWith(prefix)) counts.set(task.state, (counts.get(task.state) ?? 0) + 1);
  node.subtitle = [...counts].map(([state, count]) => `${count} ${state}`).join(", ");
  const worst = ["failed", "running", "canceled", "succeeded", "reused"].find((state) =>
    counts.has(state),
  );
  node.tone = worst ? TONES[worst] : "neutral";
}
