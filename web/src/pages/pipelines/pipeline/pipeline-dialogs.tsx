import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { Button } from "@/components/button";
import { ErrorCard } from "@/components/feedback";
import { Field, Input } from "@/components/fields/field";
import { ConfirmDialog, Dialog } from "@/components/overlays/dialog";
import { deletePipeline, type Pipeline, renamePipeline } from "../api";

interface Props {
  open: boolean;
  onClose: () => void;
  pipeline: Pipeline;
}

export function EditPipeline({ open, onClose, pipeline }: Props) {
  return (
    <Dialog open={open} onClose={onClose} title="Change name and description">
      <EditForm onClose={onClose} pipeline={pipeline} />
    </Dialog>
  );
}

function EditForm({ onClose, pipeline }: Omit<Props, "open">) {
  const client = useQueryClient();
  const [name, setName] = useState(pipeline.display_name);
  const [description, setDescription] = useState(pipeline.description);
  const [error, setError] = useState<unknown>(null);
  async function submit(event: FormEvent) {
    event.preventDefault();
    try {
      await renamePipeline(pipeline.id, name, description);
      await client.invalidateQueries({ queryKey: ["catalogue"] });
      onClose();
    } catch (failure) {
      setError(failure);
    }
  }
  return (
    <form className="flex flex-col gap-4" onSubmit={submit}>
      <Field label="Name" hint={`Programs use ${pipeline.name}, which cannot change.`}>
        <Input value={name} required maxLength={255} onChange={(e) => setName(e.target.value)} />
      </Field>
      <Field label="Description">
        <Input value={description} onChange={(event) => setDescription(event.target.value)} />
      </Field>
      {error !== null && <ErrorCard error={error} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary">
          Save
        </Button>
      </div>
    </form>
  );
}

export function DeletePipeline({ open, onClose, pipeline }: Props) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { versions, schedules, runs } = pipeline;
  return (
    <ConfirmDialog
      open={open}
      onClose={onClose}
      title={`Delete ${pipeline.display_name}?`}
      action="Delete the pipeline"
      onConfirm={async () => {
        await deletePipeline(pipeline.id);
        await navigate({ to: "/pipelines" });
        await client.invalidateQueries({ queryKey: ["catalogue"] });
      }}
    >
      <p>
        {versions === 1 ? "Its version is" : `Its ${versions} versions are`} deleted, too. Its runs
        stay{runs ? ` (${runs})` : ""}.
      </p>
      {schedules > 0 && (
        <p className="mt-2 text-failure">
          {schedules === 1 ? "A schedule uses" : `${schedules} schedules use`} it, and will fail.
          Delete {schedules === 1 ? "it" : "them"} first.
        </p>
      )}
      {pipeline.sample !== null && (
        <p className="mt-2">A sample that was deleted is not added again.</p>
      )}
    </ConfirmDialog>
  );
}
