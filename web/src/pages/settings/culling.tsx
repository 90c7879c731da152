import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import { Command } from "@/components/copy";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Section } from "@/components/page";
import { formatSeconds } from "@/components/time";

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
        <div>
          <p className="mb-1">To change the limit, start the server again:</p>
          <Command text="clew up --idle-minutes 120" />
        </div>
      ) : (
        <p>
          The cluster's operator decides, for all users: an administrator changes ENABLE_CULLING and
          CULL_IDLE_TIME in its configuration.
        </p>
      )}
    </div>
  );
}
