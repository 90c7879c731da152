import {
  Box,
  Download,
  FileCode,
  GitBranch,
  type LucideIcon,
  Repeat,
  ShieldCheck,
  Workflow,
} from "lucide-react";
import type { GraphLink, GraphNode } from "@/graph/graph";
import { readContainer } from "./component-code";
import { channelName, readableCondition } from "./conditions";
import { componentOf, executorOf, type Json, listOf, part, parts, textOf } from "./ir";

export type TaskKind =
  | "Python function"
  | "container"
  | "importer"
  | "loop"
  | "condition"
  | "exit handler"
  | "pipeline";

/** A task of a compiled pipeline, or a group of tasks. */
export interface SpecTask {
  /** The names of the groups that contain it, and its own: `for-loop-1/train`. */
  id: string;
  name: string;
  kind: TaskKind;
  /** The id of its group; undefined at the top. */
  parent: string | undefined;
  task: Json;
  component: Json;
  /** Groups only. */
  children: string[];
  /** Tasks of the same group that must end before. */
  after: string[];
  /** What it runs over, when it runs, or what it runs. */
  summary: string;
  /** It runs even if tasks before it failed. */
  always: boolean;
}

const ICONS: Record<TaskKind, LucideIcon> = {
  "Python function": FileCode,
  container: Box,
  importer: Download,
  loop: Repeat,
  condition: GitBranch,
  "exit handler": ShieldCheck,
  pipeline: Workflow,
};
const MAX_DEPTH = 30;
/** Above this many tasks, groups are closed at first. */
const OPEN_TASKS = 60;

/** All tasks by id, groups before what is in them. Components that contain themselves end here. */
export function readTasks(spec: unknown): Map<string, SpecTask> {
  const tasks = new Map<string, SpecTask>();
  function read(dag: Json, parent: SpecTask | undefined, depth: number): void {
    const found = parts(dag, "tasks");
    const names = found.map(([name]) => name);
    for (const [name, task] of found) {
      const component = componentOf(spec, task);
      const inner = part(component, "dag");
      const isGroup = component.dag !== undefined && depth < MAX_DEPTH;
      const id = parent ? `${parent.id}/${name}` : name;
      const kind = kindOf(spec, name, task, component);
      const made: SpecTask = {
        id,
        name,
        kind,
        parent: parent?.id,
        task,
        component,
        children: isGroup ? Object.keys(part(inner, "tasks")).map((one) => `${id}/${one}`) : [],
        after: [...dependencies(task)].filter((one) => names.includes(one)),
        summary: summarize(kind, task, executorOf(spec, component), names),
        always: part(task, "triggerPolicy").strategy === "ALL_UPSTREAM_TASKS_COMPLETED",
      };
      tasks.set(id, made);
      if (isGroup) read(inner, made, depth + 1);
    }
  }
  read(part(spec, "root", "dag"), undefined, 0);
  return tasks;
}

function kindOf(spec: unknown, name: string, task: Json, component: Json): TaskKind {
  if (component.dag !== undefined) {
    if (task.parameterIterator !== undefined || task.artifactIterator !== undefined) return "loop";
    if (part(task, "triggerPolicy").condition !== undefined) return "condition";
    if (/^condition-branches-\d+$/.test(name)) return "condition";
    return /^exit-handler-\d+$/.test(name) ? "exit handler" : "pipeline";
  }
  const executor = executorOf(spec, component);
  if (executor.importer !== undefined) return "importer";
  return readContainer(executor)?.function ? "Python function" : "container";
}

function dependencies(task: Json): Set<string> {
  const names = new Set(listOf(task.dependentTasks).map(String));
  for (const [, input] of [
    ...parts(task, "inputs", "parameters"),
    ...parts(task, "inputs", "artifacts"),
  ]) {
    for (const source of ["taskOutputParameter", "taskOutputArtifact", "taskFinalStatus"]) {
      const producer = textOf(part(input, source).producerTask);
      if (producer) names.add(producer);
    }
  }
  return names;
}

function summarize(kind: TaskKind, task: Json, executor: Json, siblings: string[]): string {
  const condition = textOf(part(task, "triggerPolicy").condition);
  if (kind === "loop") return describeLoop(task, siblings);
  if (condition) return `if ${readableCondition(condition, siblings)}`;
  if (kind === "condition") return "the first branch whose condition holds";
  if (kind === "exit handler") return "what follows runs even if this fails";
  if (part(task, "triggerPolicy").strategy === "ALL_UPSTREAM_TASKS_COMPLETED")
    return "runs even if others failed";
  if (kind === "importer") {
    const uri = part(executor, "importer", "artifactUri");
    return textOf(uri.constant) || "imports an artifact";
  }
  if (kind === "container") return readContainer(executor)?.image ?? "";
  if (kind === "pipeline") return "a pipeline of its own";
  return readContainer(executor)?.packages.join(", ") ?? "";
}

function describeLoop(task: Json, siblings: string[]): string {
  const items = part(task.parameterIterator ?? task.artifactIterator, "items");
  const raw = textOf(items.raw);
  const source = textOf(items.inputParameter) || textOf(items.inputArtifact);
  let over = `for each item of ${channelName(source, siblings) || "a list"}`;
  if (raw) {
    try {
      const count = listOf(JSON.parse(raw)).length;
      over = `for each of ${count} ${count === 1 ? "item" : "items"}`;
    } catch {
      over = "for each item of a list";
    }
  }
  const limit = Number(part(task, "iteratorPolicy").parallelismLimit ?? 0);
  return limit > 0 ? `${over}, ${limit} at a time` : over;
}

export function isGroup(task: SpecTask): boolean {
  return task.children.length > 0;
}

/** Whether a group shows its tasks: as at first, unless the user changed it. */
export function isOpen(id: string, count: number, toggled: ReadonlySet<string>): boolean {
  return count <= OPEN_TASKS !== toggled.has(id);
}

/** The graph of what is visible: closed groups are boxes, open ones are frames. */
export function buildPipelineGraph(
  tasks: Map<string, SpecTask>,
  toggled: ReadonlySet<string>,
): { nodes: GraphNode[]; links: GraphLink[] } {
  const nodes: GraphNode[] = [];
  const links: GraphLink[] = [];
  const visible = new Set<string>();
  for (const task of tasks.values()) {
    const { id, parent } = task;
    const shown =
      parent === undefined || (visible.has(parent) && isOpen(parent, tasks.size, toggled));
    if (!shown) continue;
    visible.add(id);
    const open = isGroup(task) && isOpen(id, tasks.size, toggled);
    nodes.push({
      id,
      parent,
      title: task.name,
      subtitle:
        open || !isGroup(task)
          ? task.summary || undefined
          : `${countTasks(tasks, task)} · ${task.summary}`,
      kind: task.kind,
      icon: ICONS[task.kind],
      tone: isGroup(task) ? "accent" : "neutral",
      isFrame: open,
      more: isGroup(task) && !open ? { after: "Show the tasks" } : undefined,
    });
    for (const before of task.after) {
      const source = parent === undefined ? before : `${parent}/${before}`;
      links.push({ id: `${source}>${id}`, source, target: id, dashed: task.always });
    }
  }
  return { nodes, links };
}

function countTasks(tasks: Map<string, SpecTask>, group: SpecTask): string {
  let count = 0;
  for (const { id, children } of tasks.values())
    if (!children.length && id.startsWith(`${group.id}/`)) count += 1;
  return `${count} ${count === 1 ? "task" : "tasks"}`;
}
