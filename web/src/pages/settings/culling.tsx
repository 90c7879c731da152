import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, unwrap } from "@/api/client";
import { Button } from "@/components/button";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Field, Input } from "@/components/fields/field";
import { formatSeconds } from "@/components/format/time";
import { Section } from "@/components/page";

const MOST_MINUTES = 366 * 24 * 60;

/** When idle notebooks, TensorBoards and volume viewers are stopped. */
export function Culling() {
  const backend = useQuery({
    queryKey: ["backend"],
    queryFn: () => unwrap(api.GET("/api/v1/backend")),
  });
  return (
    <Section title="Culling">
      {backend.isPending && <Skeleton />}
      {backend.error && <ErrorCard error={backend.error} retry={backend.refetch} />}
      {backend.data && <InForce {...backend.data.features.culling} kind={backend.data.kind} />}
    </Section>
  );
}

function InForce({
  enabled,
  idle_minutes: minutes,
  kind,
}: {
  enabled: boolean;
  idle_minutes: number | null;
  kind: string;
}) {
  if (kind === "none") {
    return (
      <EmptyState title="This server does not run notebooks" command="clew up">
        So there is nothing to stop.
      </EmptyState>
    );
  }
  return (
    <div className="flex max-w-prose flex-col gap-3">
      <p className="text-lg">
        {enabled && minutes !== null
          ? `What is idle for ${formatSeconds(minutes * 60)} is stopped.`
          : "Nothing is stopped because it is idle."}
      </p>
      <p className="text-quiet">
        A notebook is idle while none of its kernels and terminals does anything; a TensorBoard or a
        volume viewer, while nobody uses it. Stopped notebooks keep their files, and start again
        with one click. A notebook may have its own limit, which you choose when you create or edit
        it.
      </p>
      {kind === "local" ? (
        <LimitForm key={String(minutes)} minutes={minutes} />
      ) : (
        <p>
          The cluster's operator decides, for all users: an administrator changes ENABLE_CULLING and
          CULL_IDLE_TIME in the ConfigMap clew-culling.
        </p>
      )}
    </div>
  );
}

/** The limit of this machine: it holds at once, and for later starts of the server. */
function LimitForm({ minutes }: { minutes: number | null }) {
  const client = useQueryClient();
  const [text, setText] = useState(minutes === null ? "" : String(minutes));
  const [error, setError] = useState<unknown>(null);
  const chosen = text.trim() === "" ? null : Number(text);
  const isValid = chosen === null || (chosen > 0 && chosen <= MOST_MINUTES);
  async function save(event: FormEvent) {
    event.preventDefault();
    if (!isValid) return;
    setError(null);
    try {
      await api.PUT("/api/v1/idle-limit", { body: { idle_minutes: chosen } });
      await client.invalidateQueries({ queryKey: ["backend"] });
    } catch (failure) {
      setError(failure);
    }
  }
  return (
    <form onSubmit={save} className="flex flex-col items-start gap-3">
      <Field
        label="Stop what is idle for so many minutes"
        hint="Empty: nothing is stopped."
        error={isValid ? null : "Enter a number above 0, or nothing."}
      >
        <Input
          inputMode="decimal"
          className="max-w-40"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </Field>
      {error !== null && <ErrorCard error={error} />}
      <Button type="submit" disabled={!isValid || chosen === minutes}>
        Save
      </Button>
    </form>
  );
}
