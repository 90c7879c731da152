import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { curlCommand } from "@/api/curl";
import { Button, IconButton } from "@/components/button";
import { Command, CopyButton } from "@/components/copy";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Field, Input, Select } from "@/components/fields/field";
import { Time } from "@/components/format/time";
import { announce } from "@/components/overlays/announcements";
import { ConfirmDialog, Dialog } from "@/components/overlays/dialog";
import { Section } from "@/components/page";

type AccessToken = Schemas["AccessToken"];

const KEY = ["settings", "tokens"];
const DAYS: [number, string][] = [
  [7, "7 days"],
  [30, "30 days"],
  [90, "90 days"],
  [365, "1 year"],
];

/** Personal access tokens: for scripts, CI and the KFP client, one for each. */
export function AccessTokens() {
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<AccessToken | null>(null);
  const client = useQueryClient();
  const tokens = useQuery({ queryKey: KEY, queryFn: () => unwrap(api.GET("/api/v1/tokens")) });
  async function revoke(token: AccessToken) {
    await api.DELETE("/api/v1/tokens/{id}", { params: { path: { id: token.id } } });
    await client.invalidateQueries({ queryKey: KEY });
    announce(`The token “${token.name}” was revoked`);
  }
  return (
    <Section
      title="Access tokens"
      actions={
        <Button look="primary" onClick={() => setCreating(true)}>
          <Plus size={15} aria-hidden /> New token
        </Button>
      }
    >
      <p className="mb-4 max-w-prose text-quiet">
        A token lets a script, a CI job or the KFP client use this server as you. Give each its own,
        so that you can revoke one without the others. A token cannot create other tokens.
      </p>
      {tokens.isPending && <Skeleton />}
      {tokens.error && <ErrorCard error={tokens.error} retry={tokens.refetch} />}
      {tokens.data?.tokens.length === 0 && (
        <EmptyState
          title="There are no access tokens"
          command={curlCommand("/api/v1/tokens", { name: "CI", days: 30 })}
        >
          With a token, commands on another machine use this server: set CLEW_SERVER and CLEW_TOKEN.
        </EmptyState>
      )}
      {tokens.data && tokens.data.tokens.length > 0 && (
        <TokenTable tokens={tokens.data.tokens} onRevoke={setRevoking} />
      )}
      {creating && tokens.data && (
        <NewToken mayChooseUser={tokens.data.may_choose_user} onClose={() => setCreating(false)} />
      )}
      {revoking && (
        <ConfirmDialog
          open
          onClose={() => setRevoking(null)}
          title="Revoke this token?"
          action="Revoke"
          onConfirm={() => revoke(revoking)}
        >
          <p className="break-words">
            Whatever uses “{revoking.name}” is refused from now on. This cannot be undone.
          </p>
        </ConfirmDialog>
      )}
    </Section>
  );
}

function TokenTable({
  tokens,
  onRevoke,
}: {
  tokens: readonly AccessToken[];
  onRevoke: (token: AccessToken) => void;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways, also with the keyboard
    <div className="relative overflow-x-auto" tabIndex={0} role="region" aria-label="Access tokens">
      <table className="w-full min-w-[34rem] text-left">
        <thead className="text-quiet">
          <tr className="border-b border-line">
            <th className="py-1.5 pr-4 font-medium">Name</th>
            <th className="py-1.5 pr-4 font-medium">Created</th>
            <th className="py-1.5 pr-4 font-medium">Last used</th>
            <th className="py-1.5 pr-4 font-medium">Expires</th>
            <th>
              <span className="sr-only">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {tokens.map((token) => (
            <tr key={token.id} className="border-b border-line last:border-0">
              <td className="max-w-72 truncate py-1.5 pr-4 font-medium" title={describe(token)}>
                <bdi>{token.name}</bdi>
                {token.scope === "observe" && <span className="text-quiet"> (agent)</span>}
                {token.kubernetes_user && (
                  <span className="text-quiet">
                    {" "}
                    (for <bdi>{token.kubernetes_user}</bdi>)
                  </span>
                )}
              </td>
              <td className="py-1.5 pr-4">
                <Time at={token.created} />
              </td>
              <td className="py-1.5 pr-4">
                {token.last_used ? <Time at={token.last_used} /> : "never"}
              </td>
              <td className="py-1.5 pr-4">
                {token.expired ? (
                  <span className="text-failure">
                    expired <Time at={token.expires} />
                  </span>
                ) : (
                  <Time at={token.expires} />
                )}
              </td>
              <td className="py-1.5 text-right">
                <IconButton label={`Revoke ${token.name}`} onClick={() => onRevoke(token)}>
                  <Trash2 size={15} aria-hidden />
                </IconButton>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function describe({ name, kubernetes_user: user }: AccessToken): string {
  return user ? `${name} (for ${user})` : name;
}

function NewToken({ mayChooseUser, onClose }: { mayChooseUser: boolean; onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [days, setDays] = useState(30);
  const [scope, setScope] = useState<AccessToken["scope"]>("all");
  const [user, setUser] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [created, setCreated] = useState<string | null>(null);
  const readsNamespaces = mayChooseUser && scope === "all";
  async function create(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const kubernetes_user = (readsNamespaces && user.trim()) || null;
      const body = { name: name.trim(), days, scope, kubernetes_user };
      const made = await unwrap(api.POST("/api/v1/tokens", { body }));
      setCreated(made.token);
      await client.invalidateQueries({ queryKey: KEY });
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }
  if (created !== null) return <CreatedToken token={created} onClose={onClose} />;
  return (
    <Dialog open onClose={onClose} title="New access token">
      <form className="flex flex-col gap-4" onSubmit={create}>
        <Field label="Name" hint="What it is for, such as CI or my laptop.">
          <Input
            value={name}
            required
            maxLength={100}
            autoComplete="off"
            onChange={(event) => setName(event.target.value)}
          />
        </Field>
        <Field label="Valid for">
          <Select value={days} onChange={(event) => setDays(Number(event.target.value))}>
            {DAYS.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </Select>
        </Field>
        <Field label="Use" hint="An agent of a cluster can only send what it observes.">
          <Select
            value={scope}
            onChange={(event) => setScope(event.target.value as AccessToken["scope"])}
          >
            <option value="all">Everything</option>
            <option value="observe">Agent of a cluster</option>
          </Select>
        </Field>
        {readsNamespaces && (
          <Field
            label="Kubernetes user"
            hint="The token shows the lineage of the namespaces that this user may read. Without a user, of none."
          >
            <Input
              value={user}
              maxLength={1000}
              pattern="\s*[!-~]*\s*"
              title="A user's name has no spaces."
              placeholder="alice or system:serviceaccount:NAMESPACE:NAME"
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setUser(event.target.value)}
            />
          </Field>
        )}
        {error !== null && <ErrorCard error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={busy || !name.trim()}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function CreatedToken({ token, onClose }: { token: string; onClose: () => void }) {
  const server = window.location.origin;
  return (
    <Dialog open onClose={onClose} title="Your new token">
      <div className="flex flex-col gap-4">
        <p>Copy it now: it is not shown again, because the server keeps only its hash.</p>
        <div className="flex items-center gap-2 rounded-md border border-line bg-sunken py-1 pr-1 pl-3">
          <code data-testid="token" className="min-w-0 flex-1 font-mono break-all">
            {token}
          </code>
          <CopyButton text={token} label="Copy the token" />
        </div>
        <p>Use it on the command line:</p>
        <Command text={`export CLEW_SERVER=${server} CLEW_TOKEN=${token}`} />
        <Button look="primary" className="self-end" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}
