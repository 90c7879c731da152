import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { Button } from "@/components/button";
import { EmptyState } from "@/components/feedback";
import { ConfirmDialog, Dialog } from "@/components/overlays/dialog";
import { deleteSchedule, type Schedule } from "../api";
import { NewestRuns } from "../newest-runs";
import { rhythmWords, ScheduleState } from "./schedule-table";
import { whenWords } from "./words";

/** A schedule with its next times and its runs. */
export function ScheduleDialog({
  schedule,
  onClose,
  onToggle,
}: {
  schedule: Schedule | undefined;
  onClose: () => void;
  onToggle: (schedule: Schedule) => void;
}) {
  const client = useQueryClient();
  const [deleting, setDeleting] = useState(false);
  if (!schedule) {
    return (
      <Dialog open onClose={onClose} title="Schedule">
        <EmptyState title="There is no such schedule">It may have been deleted.</EmptyState>
      </Dialog>
    );
  }
  const parameters = Object.entries(schedule.parameters as Record<string, unknown>);
  return (
    <>
      <Dialog open onClose={onClose} title={schedule.name} wide>
        <div className="flex flex-col gap-4">
          <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1">
            <Row label="State">
              <ScheduleState schedule={schedule} />
            </Row>
            <Row label="Runs">
              {rhythmWords(schedule)}
              {schedule.cron && <code className="ml-2 text-quiet">{schedule.cron}</code>}
            </Row>
            {schedule.next.length > 0 && (
              <Row label="Next">{schedule.next.map((at) => whenWords(at)).join(", then ")}</Row>
            )}
            {schedule.starts && <Row label="Starts">{whenWords(schedule.starts)}</Row>}
            {schedule.ends && <Row label="Ends">{whenWords(schedule.ends)}</Row>}
            <Row label="Pipeline">
              {schedule.pipeline ? (
                <Link
                  to="/pipelines/$id"
                  params={{ id: schedule.pipeline.id }}
                  search={{ version: schedule.version?.id }}
                  className="text-accent underline"
                >
                  {schedule.pipeline.name}
                </Link>
              ) : (
                "stored with the schedule"
              )}
              {schedule.pipeline && `, ${schedule.version?.name ?? "the newest version"}`}
            </Row>
            {schedule.experiment && <Row label="Experiment">{schedule.experiment.name}</Row>}
            <Row label="At the same time">
              at most {schedule.max_concurrency};{" "}
              {schedule.catchup ? "every missed time is caught up" : "missed times are skipped"}
            </Row>
            {parameters.length > 0 && (
              <Row label="Parameters">
                <code className="break-words">
                  {parameters.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ")}
                </code>
              </Row>
            )}
            {schedule.description && <Row label="Description">{schedule.description}</Row>}
          </dl>
          <div className="flex flex-wrap gap-2">
            <Button onClick={() => onToggle(schedule)}>
              {schedule.enabled ? "Disable" : "Enable"}
            </Button>
            <Button look="danger" onClick={() => setDeleting(true)}>
              Delete
            </Button>
          </div>
          <h3 className="font-semibold">Runs of this schedule</h3>
          <NewestRuns filter={{ schedule: schedule.id }} empty="It has not run yet" />
        </div>
      </Dialog>
      <ConfirmDialog
        open={deleting}
        onClose={() => setDeleting(false)}
        title={`Delete the schedule ${schedule.name}?`}
        action="Delete the schedule"
        onConfirm={async () => {
          await deleteSchedule(schedule.id);
          await client.invalidateQueries({ queryKey: ["catalogue"] });
          onClose();
        }}
      >
        Its runs stay. To stop it for some time, disable it.
      </ConfirmDialog>
    </>
  );
}

function Row({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-quiet">{label}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  );
}
