import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/button";
import { isExecution, isRun } from "./bulk-actions";
import { ArchiveDialog, NoteDialog, RemoveDialog, TagDialog } from "./bulk-dialogs";

export const MOST_COMPARED = 10;

type Open = "tag" | "note" | "archive" | "remove" | null;

/** What can be done with the selected rows. */
export function SelectionBar({
  selected,
  onCompare,
  onClear,
}: {
  selected: string[];
  onCompare: () => void;
  onClear: () => void;
}) {
  const [open, setOpen] = useState<Open>(null);
  const executions = selected.filter(isExecution);
  const close = () => setOpen(null);
  const comparable = selected.length >= 2 && selected.length <= MOST_COMPARED;
  const onlyRuns = selected.every(isRun);
  const remarkable = selected.every((id) => isExecution(id) || isRun(id));
  const onlyExecutions = executions.length > 0 && executions.length === selected.length;
  return (
    <section
      aria-label="Selection"
      className="flex flex-wrap items-center gap-2 rounded-lg border border-accent bg-accent-soft px-3 py-1.5"
    >
      <strong className="mr-1" aria-live="polite">
        {selected.length} selected
      </strong>
      <Button look="primary" disabled={!comparable} onClick={onCompare}>
        Compare
      </Button>
      <Button disabled={!remarkable} onClick={() => setOpen("tag")}>
        Tag…
      </Button>
      <Button disabled={!remarkable} onClick={() => setOpen("note")}>
        Note…
      </Button>
      {onlyRuns && <Button onClick={() => setOpen("archive")}>Archive…</Button>}
      <Button look="danger" disabled={!onlyExecutions} onClick={() => setOpen("remove")}>
        Delete…
      </Button>
      <Button look="quiet" onClick={onClear}>
        Clear
      </Button>
      <span className="text-quiet">{explain(selected.length, onlyExecutions, remarkable)}</span>
      {open === "tag" && <TagDialog ids={selected} onClose={close} />}
      {open === "note" && <NoteDialog ids={selected} onClose={close} />}
      {open === "archive" && <ArchiveDialog ids={selected} onClose={close} onDone={onClear} />}
      {open === "remove" && <RemoveDialog ids={executions} onClose={close} onDone={onClear} />}
    </section>
  );
}

function explain(count: number, onlyExecutions: boolean, remarkable: boolean): string | null {
  if (count > MOST_COMPARED) return `Select at most ${MOST_COMPARED} to compare them.`;
  if (count < 2) return "Select another one to compare them.";
  if (!remarkable) return "Only executions and runs can be tagged and noted.";
  if (!onlyExecutions) return "Only executions can be deleted.";
  return null;
}

/** Read the table again, after an action. */
export function useRefetchActivities(): () => void {
  const client = useQueryClient();
  return () => void client.invalidateQueries({ queryKey: ["activities"] });
}
