import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Button } from "@/components/button";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Field, Input } from "@/components/fields/field";
import { ConfirmDialog, Dialog } from "@/components/overlays/dialog";
import { quoteCommand } from "../command";
import { addNote, addTags, archiveRuns, type Failure, removeExecutions } from "./bulk-actions";
import { useRefetchActivities } from "./selection-bar";

const MOST_NAMED = 8;

interface Props {
  ids: string[];
  onClose: () => void;
}

export function TagDialog({ ids, onClose }: Props) {
  return (
    <TextDialog
      title={`Tag ${nameAll(ids)}`}
      label="Tags"
      hint="Separated by spaces, such as: best baseline"
      action="Add"
      send={(text) => addTags(ids, text.split(/\s+/).filter(Boolean))}
      onClose={onClose}
    />
  );
}

export function NoteDialog({ ids, onClose }: Props) {
  return (
    <TextDialog
      title={`Note on ${nameAll(ids)}`}
      label="Note"
      hint="The filter finds its words."
      action="Add"
      send={(text) => addNote(ids, text)}
      onClose={onClose}
    />
  );
}

function TextDialog({
  title,
  label,
  hint,
  action,
  send,
  onClose,
}: {
  title: string;
  label: string;
  hint: string;
  action: string;
  send: (text: string) => Promise<Failure[]>;
  onClose: () => void;
}) {
  const refetch = useRefetchActivities();
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [failures, setFailures] = useState<Failure[]>([]);
  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    const failed = await send(text.trim());
    setBusy(false);
    setFailures(failed);
    refetch();
    if (!failed.length) onClose();
  }
  return (
    <Dialog open onClose={onClose} title={title}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <Field label={label} hint={hint}>
          <Input autoFocus required value={text} onChange={({ target }) => setText(target.value)} />
        </Field>
        {failures.map(({ id, error }) => (
          <ErrorCard key={id} error={error} />
        ))}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={busy || !text.trim()}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Archived runs leave the lists, and nothing else happens to them. */
export function ArchiveDialog({ ids, onClose, onDone }: Props & { onDone: () => void }) {
  const refetch = useRefetchActivities();
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Archive ${nameAll(ids, "runs")}`}
      action="Archive"
      onConfirm={async () => {
        const [failure] = await archiveRuns(ids, true);
        refetch();
        if (failure) throw failure.error;
        onDone();
      }}
    >
      <p>
        Archived runs are listed only with <strong>Archived</strong>. Nothing is deleted, and the
        menu of a row takes it out of the archive again.
      </p>
    </ConfirmDialog>
  );
}

/** Says what is deleted, and asks the server first whether it can be. */
export function RemoveDialog({ ids, onClose, onDone }: Props & { onDone: () => void }) {
  const refetch = useRefetchActivities();
  const preview = useQuery({
    queryKey: ["removal", ids],
    queryFn: () => removeExecutions(ids, true),
    retry: false,
  });
  if (!preview.data) {
    return (
      <Dialog open onClose={onClose} title={`Delete ${nameAll(ids)}`}>
        {preview.error ? <ErrorCard error={preview.error} /> : <Skeleton lines={3} />}
      </Dialog>
    );
  }
  const { executions } = preview.data;
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Delete ${nameAll(ids)}`}
      action={executions.length === 1 ? "Delete" : `Delete ${executions.length} executions`}
      onConfirm={async () => {
        await removeExecutions(ids, false);
        onDone();
        refetch();
      }}
    >
      <p>
        This deletes the records of these executions: nobody can trace, compare or repeat them
        afterwards. Files in your directories stay as they are. Stored content that nothing else
        needs is freed by the next <code className="font-mono">clew gc</code>.
      </p>
      <ul className="mt-3 flex flex-col gap-1">
        {executions.slice(0, MOST_NAMED).map(({ id, command }) => (
          <li key={id} className="flex gap-2">
            <strong>{id}</strong>
            <code className="min-w-0 truncate font-mono">{quoteCommand(command)}</code>
          </li>
        ))}
        {executions.length > MOST_NAMED && <li>and {executions.length - MOST_NAMED} more</li>}
      </ul>
    </ConfirmDialog>
  );
}

function nameAll(ids: string[], noun = "executions"): string {
  return ids.length > 3 ? `${ids.length} ${noun}` : ids.join(", ");
}
