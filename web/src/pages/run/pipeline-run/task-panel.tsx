import { Link } from "@tanstack/react-router";
import { X } from "lucide-react";
import { useState } from "react";
import { Button, IconButton } from "@/components/button";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { count } from "@/components/format/count";
import { Duration, Time } from "@/components/format/time";
import { StateBadge } from "@/components/state-badge";
import { Tabs } from "@/components/tabs";
import { ArtifactCard } from "../artifacts/artifact-card";
import { ValueTable } from "../artifacts/value-table";
import { Environment } from "../execution/environment";
import { FilesTab } from "../execution/files-tab";
import { useExecution } from "../execution/use-execution";
import { LogViewer } from "../logs/log-viewer";
import { RepeatDialog } from "../repeats/repeat-dialog";
import { RepeatsTab } from "../repeats/repeats-tab";
import { useRunSearch } from "../use-search";
import type { Task } from "./task-graph";
import type { Run } from "./use-run";
import { WhyTab } from "./why-tab";

/** One task of a run: its log, what it got and made, and why it ran or was reused. */
export function TaskPanel({ run, task, onClose }: { run: Run; task: Task; onClose: () => void }) {
  const [search, setSearch] = useRunSearch();
  const base = `/api/v1/tasks/${run.uid}/${task.name.split("/").map(encodeURIComponent).join("/")}`;
  const log = task.execution ? `/api/v1/versions/${task.execution}%3Astdout/content` : undefined;
  const parts = [
    {
      id: "logs",
      label: "Log",
      content: (
        <LogViewer
          base={`${base}/log`}
          download={log}
          label={`Log of ${task.name}`}
          empty={
            task.reused_from
              ? `It did not run: its result is that of ${task.reused_from}.`
              : "It printed nothing."
          }
        />
      ),
    },
    { id: "inputs", label: "Inputs", content: <Inputs task={task} /> },
    { id: "outputs", label: "Outputs", content: <Outputs task={task} /> },
    { id: "why", label: "Why", content: <WhyTab run={run} task={task} /> },
    { id: "environment", label: "Environment", content: <TaskEnvironment task={task} /> },
    {
      id: "files",
      label: "Files",
      content: task.execution ? <FilesTab id={task.execution} /> : <NotRun task={task} />,
    },
    { id: "repeats", label: "Repeats", content: <TaskRepeats task={task} /> },
  ];
  return (
    <section
      aria-label={`Task ${task.name}`}
      className="flex min-w-0 flex-col gap-3 rounded-lg border border-line bg-surface p-4"
    >
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h2 className="min-w-0 break-words">{task.name}</h2>
        <StateBadge state={task.state} />
        <Time at={task.started} />
        <Duration seconds={task.seconds} />
        {task.execution && (
          <Link to="/runs/$id" params={{ id: task.execution }} className="text-accent underline">
            {task.execution}
          </Link>
        )}
        {task.attempts.length > 1 && (
          <span className="text-quiet">{count(task.attempts.length, "attempt")}</span>
        )}
        {task.pod && (
          <span className="min-w-0 break-words text-quiet">
            Pod {task.pod}
            {task.node && ` on ${task.node}`}
          </span>
        )}
        <span className="ml-auto">
          <IconButton label="Close the task" className="px-1.5" onClick={onClose}>
            <X size={16} aria-hidden />
          </IconButton>
        </span>
      </header>
      {task.error && <ErrorCard error={new Error(task.error)} />}
      <Tabs
        label="Parts of the task"
        selected={search.part ?? "logs"}
        onSelect={(part) =>
          setSearch({ part: part === "logs" ? undefined : part, find: undefined, line: undefined })
        }
        tabs={parts}
      />
    </section>
  );
}

function NotRun({ task }: { task: Task }) {
  return <EmptyState title="It did not run">{task.why ?? task.state}</EmptyState>;
}

function Inputs({ task }: { task: Task }) {
  const parameters = task.parameters as Record<string, unknown>;
  const inputs = (task.parts as { inputs?: Record<string, unknown> }).inputs ?? {};
  if (!Object.keys(parameters).length && !Object.keys(inputs).length)
    return <p className="text-quiet">It has no inputs.</p>;
  return (
    <div className="flex flex-col gap-4">
      {Object.keys(parameters).length > 0 && <ValueTable label="Parameters" values={parameters} />}
      {Object.keys(inputs).length > 0 && (
        <div>
          <h3 className="mb-1 font-semibold">Artifacts that it got</h3>
          <ValueTable label="Input artifacts" values={inputs} />
        </div>
      )}
    </div>
  );
}

function Outputs({ task }: { task: Task }) {
  const outputs = task.outputs as Record<string, unknown>;
  const artifacts = Object.entries(task.artifacts);
  if (!Object.keys(outputs).length && !artifacts.length)
    return <p className="text-quiet">It made no outputs.</p>;
  return (
    <div className="flex min-w-0 flex-col gap-4">
      {Object.keys(outputs).length > 0 && <ValueTable label="Output parameters" values={outputs} />}
      {artifacts.flatMap(([name, several]) =>
        several.map((artifact) => (
          <ArtifactCard key={artifact.uri} name={name} artifact={artifact} />
        )),
      )}
    </div>
  );
}

function TaskEnvironment({ task }: { task: Task }) {
  const execution = useExecution(task.execution ?? "", Boolean(task.execution));
  if (!task.execution) return <NotRun task={task} />;
  if (execution.error) return <ErrorCard error={execution.error} />;
  if (!execution.data) return <Skeleton />;
  const { pod, node, placement, image_digest } = task;
  const why = placement ? { placement } : {};
  return (
    <div className="flex min-w-0 flex-col gap-4">
      {pod && <ValueTable label="Where it ran" values={{ pod, node, ...why, image_digest }} />}
      <Environment execution={execution.data} />
    </div>
  );
}

function TaskRepeats({ task }: { task: Task }) {
  const execution = useExecution(task.execution ?? "", Boolean(task.execution));
  const [, setSearch] = useRunSearch();
  const [repeating, setRepeating] = useState(false);
  if (!task.execution) return <NotRun task={task} />;
  if (execution.error) return <ErrorCard error={execution.error} />;
  if (!execution.data) return <Skeleton />;
  return (
    <div className="flex flex-col gap-3">
      <div>
        <Button
          look="primary"
          disabled={execution.data.state === "running"}
          onClick={() => setRepeating(true)}
        >
          Repeat the task
        </Button>
      </div>
      <RepeatsTab uid={execution.data.uid} command={`clew repeat ${task.id}`} />
      {repeating && (
        <RepeatDialog
          execution={execution.data}
          onClose={() => setRepeating(false)}
          onQueued={(request) => {
            setRepeating(false);
            setSearch({ repeat: request.id });
          }}
        />
      )}
    </div>
  );
}
