import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { Button, IconButton } from "@/components/button";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Checkbox, Field, Input } from "@/components/fields/field";
import { announce } from "@/components/overlays/announcements";
import { ConfirmDialog, Dialog } from "@/components/overlays/dialog";
import { Section } from "@/components/page";
import { StateBadge } from "@/components/state-badge";

type RemoteInfo = Schemas["RemoteInfo"];
type RemoteCheck = Schemas["RemoteCheck"];

const KEY = ["settings", "remotes"];

/** The remotes of the project, as `clew remote` lists them. */
export function Remotes() {
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<string | null>(null);
  const client = useQueryClient();
  const remotes = useQuery({ queryKey: KEY, queryFn: () => unwrap(api.GET("/api/v1/remotes")) });
  async function remove(name: string) {
    await api.DELETE("/api/v1/remotes/{name}", { params: { path: { name } } });
    await client.invalidateQueries({ queryKey: KEY });
    announce(`The remote ${name} was removed`);
  }
  return (
    <Section
      title="Remotes"
      actions={
        <Button look="primary" onClick={() => setAdding(true)}>
          <Plus size={15} aria-hidden /> Add remote
        </Button>
      }
    >
      <p className="mb-4 max-w-prose text-quiet">
        A remote is a directory or a bucket that <code className="font-mono">clew push</code> sends
        executions to, and <code className="font-mono">clew pull</code> fetches them from.
      </p>
      {remotes.isPending && <Skeleton />}
      {remotes.error && <ErrorCard error={remotes.error} retry={remotes.refetch} />}
      {remotes.data?.remotes.length === 0 && (
        <EmptyState title="There are no remotes" command="clew remote add lab s3://bucket/paper">
          Add one to share executions with colleagues and other machines.
        </EmptyState>
      )}
      <ul className="flex flex-col divide-y divide-line">
        {remotes.data?.remotes.map((remote) => (
          <Remote key={remote.name} remote={remote} onRemove={() => setRemoving(remote.name)} />
        ))}
      </ul>
      {adding && <NewRemote onClose={() => setAdding(false)} />}
      {removing !== null && (
        <ConfirmDialog
          open
          onClose={() => setRemoving(null)}
          title={`Remove the remote ${removing}?`}
          action="Remove"
          onConfirm={() => remove(removing)}
        >
          <p>The project forgets its address. What is stored there stays.</p>
        </ConfirmDialog>
      )}
    </Section>
  );
}

function Remote({ remote, onRemove }: { remote: RemoteInfo; onRemove: () => void }) {
  const [check, setCheck] = useState<RemoteCheck | "checking" | null>(null);
  const [error, setError] = useState<unknown>(null);
  async function test() {
    setCheck("checking");
    setError(null);
    try {
      const path = { name: remote.name };
      setCheck(await unwrap(api.POST("/api/v1/remotes/{name}/check", { params: { path } })));
    } catch (failure) {
      setCheck(null);
      setError(failure);
    }
  }
  return (
    <li className="flex flex-col gap-2 py-3 first:pt-0 last:pb-0">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <div className="min-w-0 flex-1 basis-60">
          <p className="font-medium">
            {remote.name}
            {remote.default && <span className="ml-2 font-normal text-quiet">default</span>}
          </p>
          <p className="font-mono text-quiet break-all">{remote.url}</p>
        </div>
        <div className="flex items-center gap-1">
          <Button onClick={test} disabled={check === "checking"}>
            {check === "checking" ? "Testing…" : "Test connection"}
          </Button>
          <IconButton label={`Remove ${remote.name}`} onClick={onRemove}>
            <Trash2 size={15} aria-hidden />
          </IconButton>
        </div>
      </div>
      <div aria-live="polite">
        {check !== null && check !== "checking" && <CheckResult check={check} />}
        {error !== null && <ErrorCard error={error} />}
      </div>
    </li>
  );
}

function CheckResult({ check }: { check: RemoteCheck }) {
  if (!check.ok) {
    return (
      <p className="flex flex-wrap items-center gap-2">
        <StateBadge state="error" label="cannot be read" />
        <span className="min-w-0 break-words">{check.error}</span>
        {check.hint && <span className="text-quiet">{check.hint}</span>}
      </p>
    );
  }
  const there =
    check.executions === null
      ? "nothing is there yet: the first push makes the remote"
      : `it has ${check.executions} execution${check.executions === 1 ? "" : "s"}`;
  return (
    <p className="flex flex-wrap items-center gap-2">
      <StateBadge state="ready" label="can be read" /> <span>{there}</span>
    </p>
  );
}

function NewRemote({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [isDefault, setDefault] = useState(false);
  const [error, setError] = useState<unknown>(null);
  async function add(event: FormEvent) {
    event.preventDefault();
    setError(null);
    try {
      await api.POST("/api/v1/remotes", { body: { name, url: url.trim(), default: isDefault } });
      await client.invalidateQueries({ queryKey: KEY });
      announce(`The remote ${name} was added`);
      onClose();
    } catch (failure) {
      setError(failure);
    }
  }
  return (
    <Dialog open onClose={onClose} title="Add a remote">
      <form className="flex flex-col gap-4" onSubmit={add}>
        <Field label="Name" hint="Letters, digits, dots, dashes and underscores, such as lab.">
          <Input
            value={name}
            required
            pattern="[A-Za-z][A-Za-z0-9_.\-]{0,63}"
            autoComplete="off"
            onChange={(event) => setName(event.target.value)}
          />
        </Field>
        <Field
          label="Address"
          hint="s3://bucket/prefix, or a directory of the server's machine such as /mnt/lab/paper."
        >
          <Input
            value={url}
            required
            autoComplete="off"
            className="font-mono"
            onChange={(event) => setUrl(event.target.value)}
          />
        </Field>
        <Checkbox
          label="Use it when no remote is named"
          checked={isDefault}
          onChange={(event) => setDefault(event.target.checked)}
        />
        {error !== null && <ErrorCard error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit">
            Add
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
