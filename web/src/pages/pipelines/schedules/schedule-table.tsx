import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { curlCommand } from "@/api/curl";
import { Button, ButtonLink } from "@/components/button";
import { type Column, DataTable } from "@/components/data-table";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { StateBadge } from "@/components/state-badge";
import { pipelinesQuery, type Schedule, schedulesQuery, setEnabled } from "../api";
import { LastRun } from "../last-run";
import { ScheduleDialog } from "./schedule-dialog";
import { cronWords, intervalWords, whenWords } from "./words";

const EVERY_HOUR = { name: "Every hour", interval: 3600 };

export function rhythmWords(schedule: Schedule): string {
  return schedule.cron ? cronWords(schedule.cron) : intervalWords(schedule.interval ?? 1);
}

/** All schedules, or those of a pipeline; the selected one is open in a dialog. */
export function SchedulesOf({
  pipeline,
  selected,
  onSelect,
}: {
  pipeline?: string;
  selected?: string;
  onSelect?: (id: string | undefined) => void;
}) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [failure, setFailure] = useState<unknown>(null);
  const { data, error, refetch } = useQuery(schedulesQuery(pipeline));
  const pipelines = useQuery({ ...pipelinesQuery(), enabled: data?.length === 0 && !pipeline });
  const scheduled = pipeline ?? pipelines.data?.pipelines[0]?.id;
  if (error) return <ErrorCard error={error} retry={refetch} />;
  if (!data) return <Skeleton />;
  const open = onSelect ?? ((id) => navigate({ to: "/schedules", search: { schedule: id } }));
  async function toggle(schedule: Schedule) {
    setFailure(null);
    try {
      await setEnabled(schedule.id, !schedule.enabled);
      await client.invalidateQueries({ queryKey: ["catalogue"] });
    } catch (problem) {
      setFailure(problem);
    }
  }
  return (
    <div className="flex flex-col gap-3">
      {failure !== null && <ErrorCard error={failure} />}
      {data.length ? (
        <DataTable
          label="Schedules"
          columns={columns(open, toggle)}
          rows={data}
          rowKey={(row) => row.id}
          onOpen={(row) => open(row.id)}
        />
      ) : (
        <EmptyState
          title="Nothing is scheduled"
          command={
            scheduled && curlCommand("/api/v1/schedules", { ...EVERY_HOUR, pipeline: scheduled })
          }
          action={
            <ButtonLink to="/pipelines/start" search={{ pipeline, when: "schedule" }}>
              Schedule a pipeline
            </ButtonLink>
          }
        >
          A schedule runs a pipeline by cron or at an interval, as long as the server runs.
          {!scheduled && " There are no pipelines yet: upload one first."}
        </EmptyState>
      )}
      {onSelect && selected !== undefined && (
        <ScheduleDialog
          schedule={data.find((one) => one.id === selected)}
          onClose={() => onSelect(undefined)}
          onToggle={toggle}
        />
      )}
    </div>
  );
}

function columns(
  open: (id: string) => void,
  toggle: (schedule: Schedule) => void,
): Column<Schedule>[] {
  return [
    {
      id: "name",
      header: "Name",
      width: "minmax(9rem, 1.2fr)",
      cell: (row) => (
        <button
          type="button"
          className="max-w-full truncate font-medium hover:underline"
          onClick={() => open(row.id)}
        >
          {row.name}
        </button>
      ),
    },
    {
      id: "pipeline",
      header: "Pipeline",
      width: "minmax(7rem, 1fr)",
      cell: (row) => row.pipeline?.name ?? <span className="text-quiet">its own</span>,
    },
    {
      id: "rhythm",
      header: "Runs",
      width: "minmax(14rem, 1.5fr)",
      cell: (row) => <span title={row.cron ?? undefined}>{rhythmWords(row)}</span>,
    },
    {
      id: "next",
      header: "Next",
      width: "13.5rem",
      cell: (row) => (row.next[0] ? whenWords(row.next[0]) : <span className="text-quiet">–</span>),
    },
    {
      id: "last",
      header: "Last run",
      width: "11.5rem",
      cell: (row) => <LastRun run={row.last_run} />,
    },
    {
      id: "state",
      header: "State",
      width: "6.5rem",
      cell: (row) => <ScheduleState schedule={row} />,
    },
    {
      id: "actions",
      header: "Actions",
      width: "6rem",
      cell: (row) => (
        <Button
          look="quiet"
          aria-label={`${row.enabled ? "Disable" : "Enable"} ${row.name}`}
          onClick={() => toggle(row)}
        >
          {row.enabled ? "Disable" : "Enable"}
        </Button>
      ),
    },
  ];
}

export function ScheduleState({ schedule }: { schedule: Schedule }) {
  if (!schedule.enabled) return <StateBadge state="stopped" label="disabled" />;
  if (!schedule.next.length) return <StateBadge state="done" label="ended" />;
  return <StateBadge state="ready" label="enabled" />;
}
