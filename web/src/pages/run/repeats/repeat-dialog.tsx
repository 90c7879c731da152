import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { Button } from "@/components/button";
import { Command } from "@/components/copy";
import { ErrorCard } from "@/components/feedback";
import { Checkbox, Field, Input } from "@/components/fields/field";
import { Dialog } from "@/components/overlays/dialog";

type Execution = Schemas["ExecutionSummary"];

/** Repeat an execution: as it was, or with other values of its parameters. */
export function RepeatDialog({
  execution,
  onClose,
  onQueued,
}: {
  execution: Execution;
  onClose: () => void;
  onQueued: (request: { id: string }) => void;
}) {
  const recorded = execution.parameters as Record<string, unknown>;
  // A flag has no value that could be replaced.
  const names = Object.keys(recorded).filter((name) => recorded[name] !== null);
  const [values, setValues] = useState<Record<string, string>>({});
  const [incremental, setIncremental] = useState(false);
  const [network, setNetwork] = useState(false);
  const [gpu, setGpu] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const client = useQueryClient();
  const changed = Object.entries(values).filter(
    ([name, value]) => value !== String(recorded[name]),
  );
  const id = execution.id ?? execution.uid;

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const request = await unwrap(
        api.POST("/api/v1/executions/{id}/repeats", {
          params: { path: { id } },
          body: { parameters: Object.fromEntries(changed), incremental, network, gpu },
        }),
      );
      client.invalidateQueries({ queryKey: ["repeats"] });
      onQueued(request);
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  }
  const flags = [
    ...changed.map(([name, value]) => `--set ${name}=${value}`),
    incremental && "--incremental",
    network && "--network",
    gpu && "--gpu",
  ].filter(Boolean);
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Repeat ${id}`}
      description="The server runs the command again with exactly the files, variables and directory that it had, isolated from everything else, and compares the results."
    >
      <form onSubmit={submit} className="flex flex-col gap-4">
        {names.length > 0 && (
          <fieldset className="flex flex-col gap-3">
            <legend className="mb-2 font-medium">Parameters</legend>
            {names.map((name) => (
              <Field
                key={name}
                label={name}
                hint={
                  values[name] !== undefined && values[name] !== String(recorded[name])
                    ? `It was ${String(recorded[name])}`
                    : undefined
                }
              >
                <Input
                  value={values[name] ?? String(recorded[name])}
                  onChange={(event) => setValues({ ...values, [name]: event.target.value })}
                />
              </Field>
            ))}
          </fieldset>
        )}
        <div className="flex flex-col gap-1.5">
          <Checkbox
            label="Reuse results that are still valid"
            checked={incremental}
            onChange={(event) => setIncremental(event.target.checked)}
          />
          <Checkbox
            label="Allow the network"
            checked={network}
            disabled={execution.made_elsewhere}
            onChange={(event) => setNetwork(event.target.checked)}
          />
          <Checkbox
            label="Allow GPUs, if it used them"
            checked={gpu}
            disabled={execution.made_elsewhere}
            onChange={(event) => setGpu(event.target.checked)}
          />
          {execution.made_elsewhere && (
            <p className="text-quiet">
              It was made elsewhere, so the server gives it neither network nor GPUs.
            </p>
          )}
          <p className="text-quiet">
            A repeat gets no secrets here. If it needs some, the command line asks for them:
          </p>
          <Command text={["clew repeat", id, ...flags].join(" ")} />
        </div>
        {error !== null && <ErrorCard error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={busy}>
            {changed.length ? "Run with these values" : "Repeat"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
