import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Archive, ArchiveRestore, Copy, GitCompareArrows } from "lucide-react";
import { useState } from "react";
import { ButtonLink, IconButton } from "@/components/button";
import { type Column, DataTable } from "@/components/data-table";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Checkbox } from "@/components/fields/field";
import { count } from "@/components/format/count";
import { Duration, Time } from "@/components/format/time";
import { StateBadge } from "@/components/state-badge";
import { type Activity, archiveRun, type RunFilter, runsQuery } from "./api";
import type { RunsSearch, StartSearch } from "./routes";

const MAX_COMPARED = 10;

/** The newest runs of a pipeline, schedule or experiment. The URL has what is selected. */
export function NewestRuns({
  filter,
  empty,
  start,
}: {
  filter: RunFilter;
  empty: string;
  start?: StartSearch;
}) {
  const { archivedRuns: archived = false, marked: text } = useSearch({ strict: false });
  const [failure, setFailure] = useState<unknown>(null);
  const client = useQueryClient();
  const navigate = useNavigate();
  const { data, error, refetch } = useQuery(runsQuery({ ...filter, archived }));
  const selected = new Set(text?.split(",") ?? []);
  const change = (changes: RunsSearch) =>
    navigate({ to: ".", search: (before) => ({ ...before, ...changes }), replace: true });
  if (error) return <ErrorCard error={error} retry={refetch} />;
  if (!data) return <Skeleton />;
  async function archive(run: Activity) {
    setFailure(null);
    try {
      await archiveRun(run.uid, !run.archived);
      await client.invalidateQueries({ queryKey: ["runs"] });
    } catch (problem) {
      setFailure(problem);
    }
  }
  function toggle(id: string) {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    change({ marked: [...next].join(",") || undefined });
  }
  return (
    <div className="flex flex-col gap-3">
      {failure !== null && <ErrorCard error={failure} />}
      {data.activities.length ? (
        <DataTable
          label="Runs"
          columns={columns(archive)}
          rows={data.activities}
          rowKey={(row) => row.id}
          selection={{ selected, onToggle: toggle }}
          onOpen={(row) => navigate({ to: "/runs/$id", params: { id: row.id } })}
        />
      ) : (
        <EmptyState
          title={empty}
          action={
            start && (
              <ButtonLink to="/pipelines/start" search={start}>
                Run it
              </ButtonLink>
            )
          }
        />
      )}
      <div className="flex flex-wrap items-center gap-4">
        <Checkbox
          label="Show archived runs"
          checked={archived}
          onChange={(event) => change({ archivedRuns: event.target.checked || undefined })}
        />
        {selected.size >= 2 && selected.size <= MAX_COMPARED ? (
          <ButtonLink to="/compare" search={{ id: [...selected] }}>
            <GitCompareArrows size={15} aria-hidden /> Compare {count(selected.size, "run")}
          </ButtonLink>
        ) : (
          data.activities.length > 1 && (
            <span className="text-quiet">Select two to ten runs to compare them.</span>
          )
        )}
        {(data.total ?? 0) > data.activities.length && (
          <span className="text-quiet">
            The newest {data.activities.length} of {data.total?.toLocaleString("en")} are shown.
          </span>
        )}
      </div>
    </div>
  );
}

function columns(archive: (run: Activity) => void): Column<Activity>[] {
  return [
    {
      id: "name",
      header: "Run",
      width: "minmax(10rem, 1.5fr)",
      cell: (run) => (
        <span className="flex min-w-0 items-baseline gap-2">
          <Link
            to="/runs/$id"
            params={{ id: run.id }}
            className="truncate font-medium hover:underline"
          >
            {run.name || run.id}
          </Link>
          {run.id !== run.uid && <span className="text-sm text-quiet">{run.id}</span>}
        </span>
      ),
    },
    {
      id: "state",
      header: "State",
      width: "9rem",
      cell: (run) => <StateBadge state={run.state} />,
    },
    {
      id: "values",
      header: "Parameters and metrics",
      width: "minmax(10rem, 2fr)",
      cell: (run) => {
        const text = run.error ?? describeValues(run);
        return (
          <span className={run.error ? "text-failure" : "text-quiet"} title={text}>
            {text || "–"}
          </span>
        );
      },
    },
    { id: "started", header: "Started", width: "9.5rem", cell: (run) => <Time at={run.started} /> },
    {
      id: "seconds",
      header: "Duration",
      width: "7rem",
      align: "right",
      cell: (run) => <Duration seconds={run.seconds} />,
    },
    {
      id: "actions",
      header: "Actions",
      width: "6.5rem",
      cell: (run) => (
        <span className="flex">
          <ButtonLink
            look="quiet"
            to="/pipelines/start"
            search={{ from: run.id }}
            aria-label={`Clone ${run.name || run.id}`}
            className="px-2"
          >
            <Copy size={15} aria-hidden />
          </ButtonLink>
          <IconButton
            label={`${run.archived ? "Unarchive" : "Archive"} ${run.name || run.id}`}
            className="px-2"
            onClick={() => archive(run)}
          >
            {run.archived ? (
              <ArchiveRestore size={15} aria-hidden />
            ) : (
              <Archive size={15} aria-hidden />
            )}
          </IconButton>
        </span>
      ),
    },
  ];
}

function describeValues(run: Activity): string {
  const metrics = Object.entries(run.metrics ?? {}).map(([name, value]) => `${name} ${value}`);
  const parameters = Object.entries(run.parameters ?? {}).map(
    ([name, value]) => `${name}=${value}`,
  );
  return [...metrics, ...parameters].join(", ");
}
