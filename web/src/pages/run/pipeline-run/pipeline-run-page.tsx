import { useQueryClient } from "@tanstack/react-query";
import { Ban, Copy, Play, Repeat, Waypoints } from "lucide-react";
import { useState } from "react";
import { api, unwrap } from "@/api/client";
import { Button, ButtonLink } from "@/components/button";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { count } from "@/components/format/count";
import { Duration, Time } from "@/components/format/time";
import { ConfirmDialog } from "@/components/overlays/dialog";
import { Page } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { Tabs } from "@/components/tabs";
import { ExportMenu } from "../export-menu";
import { Tags } from "../remarks/tags";
import { RepeatsTab } from "../repeats/repeats-tab";
import { useRunSearch } from "../use-search";
import { RunMenu } from "./run-menu";
import { Artifacts, Details, Metrics } from "./run-parts";
import { TasksTab } from "./tasks-tab";
import { isActive, type Run, useRun } from "./use-run";

const EXPORTS = ["bundle", "prov-json", "prov-n"] as const;

/** A pipeline run: its tasks as they go, what they made, and its actions. */
export function PipelineRunPage({ id }: { id: string }) {
  const run = useRun(id);
  const [search, setSearch] = useRunSearch();
  if (run.error)
    return (
      <Page title={id}>
        <ErrorCard error={run.error} retry={() => run.refetch()} />
      </Page>
    );
  if (!run.data)
    return (
      <Page title={id}>
        <Skeleton lines={8} />
      </Page>
    );
  const found = run.data;
  const shown = found.id ?? found.uid;
  return (
    <Page
      title={found.name ?? shown}
      subtitle={
        <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <StateBadge state={found.state} />
          {found.id && <span>{found.id}</span>}
          <Time at={found.started ?? found.created} />
          <Duration seconds={found.seconds} />
          <span>{describeTasks(found)}</span>
        </p>
      }
      actions={<Actions run={found} />}
    >
      <Tags id={shown} tags={found.tags} />
      {found.error && <ErrorCard error={new Error(found.error)} />}
      <Tabs
        label="Parts of the run"
        selected={search.tab ?? "tasks"}
        onSelect={(tab) => setSearch({ tab: tab === "tasks" ? undefined : tab })}
        tabs={[
          { id: "tasks", label: "Tasks", content: <TasksTab run={found} /> },
          { id: "artifacts", label: "Artifacts", content: <Artifacts run={found} /> },
          { id: "metrics", label: "Metrics", content: <Metrics run={found} /> },
          { id: "details", label: "Inputs and details", content: <Details run={found} /> },
          {
            id: "repeats",
            label: "Repeats",
            content: <RepeatsTab uid={found.uid} command={`clew repeat ${shown}`} />,
          },
        ]}
      />
    </Page>
  );
}

function describeTasks({ tasks }: Run): string {
  const counts = new Map<string, number>();
  for (const { state } of tasks) counts.set(state, (counts.get(state) ?? 0) + 1);
  if (!tasks.length) return "no task has started";
  const states = [...counts].map(([state, number]) => `${number} ${state}`);
  return `${count(tasks.length, "task")}: ${states.join(", ")}`;
}

function Actions({ run }: { run: Run }) {
  const [error, setError] = useState<unknown>(null);
  const [terminating, setTerminating] = useState(false);
  const [, setSearch] = useRunSearch();
  const client = useQueryClient();
  const active = isActive(run);
  const path = { params: { path: { id: run.uid } } };
  const refresh = () => client.invalidateQueries({ queryKey: ["runs"] });
  async function act(action: () => Promise<unknown>) {
    setError(null);
    try {
      await action();
      await refresh();
    } catch (failure) {
      setError(failure);
    }
  }
  return (
    <>
      {active ? (
        <Button look="danger" onClick={() => setTerminating(true)}>
          <Ban size={15} aria-hidden /> Terminate
        </Button>
      ) : (
        <Button
          look="primary"
          disabled={!run.tasks.some((task) => task.execution)}
          onClick={() =>
            act(async () => {
              const request = await unwrap(api.POST("/api/v1/runs/{id}/repeats", path));
              client.invalidateQueries({ queryKey: ["repeats"] });
              setSearch({ tab: "repeats", repeat: request.id });
            })
          }
        >
          <Repeat size={15} aria-hidden /> Repeat
        </Button>
      )}
      {(run.state === "failed" || run.state === "canceled") && (
        <Button onClick={() => act(() => api.POST("/api/v1/runs/{id}/resume", path))}>
          <Play size={15} aria-hidden />
          {run.state === "failed" ? "Retry what failed" : "Resume"}
        </Button>
      )}
      <CloneButton run={run} />
      {run.id && (
        <ButtonLink to="/lineage" search={{ target: run.id }}>
          <Waypoints size={15} aria-hidden /> Lineage
        </ButtonLink>
      )}
      <ExportMenu
        path={`/api/v1/runs/${encodeURIComponent(run.uid)}/export`}
        formats={EXPORTS}
        disabled={active || !run.tasks.some((task) => task.execution)}
      />
      <RunMenu run={run} onError={setError} />
      {error !== null && (
        <div className="w-full">
          <ErrorCard error={error} />
        </div>
      )}
      <ConfirmDialog
        open={terminating}
        onClose={() => setTerminating(false)}
        title={`Terminate ${run.name ?? run.uid}?`}
        action="Terminate"
        onConfirm={async () => {
          await api.POST("/api/v1/runs/{id}/cancel", path);
          await refresh();
        }}
      >
        Its running tasks are ended. What has finished is kept, and the run can be resumed.
      </ConfirmDialog>
    </>
  );
}

/** Opens the form of the pipeline with the parameters of this run. */
function CloneButton({ run }: { run: Run }) {
  return (
    <ButtonLink to="/pipelines/start" search={{ from: run.id ?? run.uid }}>
      <Copy size={15} aria-hidden /> Clone
    </ButtonLink>
  );
}
