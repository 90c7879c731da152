import { useMemo } from "react";
import { Button } from "@/components/button";
import { EmptyState, Skeleton } from "@/components/feedback";
import { LazyGraph } from "@/graph/lazy";
import { useRunSearch } from "../use-search";
import { buildTaskGraph } from "./task-graph";
import { TaskPanel } from "./task-panel";
import { TaskTable } from "./task-table";
import { type Run, useTemplate } from "./use-run";

/** The tasks of a run, as a graph or as a table, and the selected one beside it. */
export function TasksTab({ run }: { run: Run }) {
  const [search, setSearch] = useRunSearch();
  const template = useTemplate(run.uid);
  const graph = useMemo(
    () => buildTaskGraph(run.tasks, template.data?.spec),
    [run.tasks, template.data],
  );
  const selected = run.tasks.find((task) => task.name === search.task);
  const isTable = search.view === "table";
  const select = (task: string | undefined) =>
    setSearch({ task, part: task ? search.part : undefined, find: undefined, line: undefined });
  if (!graph.nodes.length) {
    return (
      <EmptyState title="It has no tasks yet">
        {run.state === "pending"
          ? "It waits until the server has room for another run."
          : "No task has started."}
      </EmptyState>
    );
  }
  return (
    <div className={`grid min-w-0 items-start gap-4 ${search.task ? "xl:grid-cols-2" : ""}`}>
      <div className="flex min-w-0 flex-col gap-2">
        <div className="flex gap-1" role="group" aria-label="Shown as">
          {(["graph", "table"] as const).map((view) => (
            <Button
              key={view}
              look={(isTable ? "table" : "graph") === view ? "secondary" : "quiet"}
              aria-pressed={(isTable ? "table" : "graph") === view}
              onClick={() => setSearch({ view: view === "graph" ? undefined : view })}
            >
              {view === "graph" ? "Graph" : "Table"}
            </Button>
          ))}
        </div>
        {isTable ? (
          <TaskTable tasks={run.tasks} onSelect={(task) => select(task.name)} />
        ) : template.isPending ? (
          <Skeleton lines={6} />
        ) : (
          <LazyGraph
            label="Tasks of the run"
            nodes={graph.nodes}
            links={graph.links}
            direction="down"
            selected={search.task ?? null}
            focus={findFocus(run)}
            onSelect={(id) => select(id ?? undefined)}
          />
        )}
      </div>
      {search.task &&
        (selected ? (
          <TaskPanel
            key={selected.id}
            run={run}
            task={selected}
            onClose={() => select(undefined)}
          />
        ) : (
          <EmptyState
            title={
              graph.nodes.some(({ id, isFrame }) => id === search.task && isFrame)
                ? "A group of tasks"
                : "It has not started"
            }
            action={<Button onClick={() => select(undefined)}>Close</Button>}
          >
            {graph.nodes.find(({ id }) => id === search.task)?.subtitle}
          </EmptyState>
        ))}
    </div>
  );
}

/** What matters most in a graph that is too large to be read as a whole. */
function findFocus({ tasks }: Run): string | null {
  const find = (state: string) => tasks.find((task) => task.state === state);
  return (find("failed") ?? find("running") ?? tasks[0])?.name ?? null;
}
