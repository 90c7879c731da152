import { useMemo } from "react";
import { EmptyState } from "@/components/feedback";
import { LazyGraph } from "@/graph/lazy";
import { buildPipelineGraph, readTasks } from "../spec/pipeline-graph";
import { PipelineSummary } from "./pipeline-summary";
import { TaskPanel } from "./task-panel";

/** The graph of a compiled pipeline, and the details of the selected task beside it. */
export function PipelineGraph({
  spec,
  selected,
  toggled,
  warnings,
  onChange,
}: {
  spec: unknown;
  selected: string | undefined;
  toggled: string | undefined;
  warnings: string[];
  onChange: (changes: { task?: string; toggled?: string }) => void;
}) {
  const tasks = useMemo(() => readTasks(spec), [spec]);
  const changed = useMemo(() => new Set(toggled?.split(",") ?? []), [toggled]);
  const { nodes, links } = useMemo(() => buildPipelineGraph(tasks, changed), [tasks, changed]);
  function toggle(id: string) {
    const next = new Set(changed);
    if (!next.delete(id)) next.add(id);
    onChange({ task: id, toggled: [...next].join(",") || undefined });
  }
  const task = selected === undefined ? undefined : tasks.get(selected);
  if (!tasks.size) return <EmptyState title="This pipeline has no tasks" />;
  return (
    <div className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_24rem]">
      <LazyGraph
        label="Graph of the pipeline"
        nodes={nodes}
        links={links}
        direction="down"
        selected={task ? (selected ?? null) : null}
        onSelect={(id) => onChange({ task: id ?? undefined })}
        onMore={(id) => toggle(id)}
      />
      {task ? (
        <TaskPanel
          spec={spec}
          task={task}
          tasks={tasks}
          isOpen={nodes.some((node) => node.id === task.id && node.isFrame)}
          onToggle={() => toggle(task.id)}
        />
      ) : (
        <PipelineSummary spec={spec} count={tasks.size} warnings={warnings} />
      )}
    </div>
  );
}
