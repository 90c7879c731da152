import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import { CodeBlock } from "@/components/copy";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Section } from "@/components/page";
import { StateBadge } from "@/components/state-badge";

/** The administrator's defaults of the notebook form, and what is wrong with them. */
export function Administration() {
  const backend = useQuery({
    queryKey: ["backend"],
    queryFn: () => unwrap(api.GET("/api/v1/backend")),
  });
  const kind = backend.data?.kind;
  const defaults = useQuery({
    enabled: kind !== undefined && kind !== "none",
    queryKey: ["backend", "form-defaults"],
    queryFn: () => unwrap(api.GET("/api/v1/form-defaults")),
  });
  return (
    <Section title="Defaults of the notebook form">
      <p className="mb-4 max-w-prose text-quiet">
        <code className="font-mono">spawner_ui_config.yaml</code>, in Kubeflow's format, says what
        the form offers and what users may change. The server enforces it for every request, and
        reads it again when it changes.
      </p>
      {backend.error && <ErrorCard error={backend.error} retry={backend.refetch} />}
      {kind === "none" && (
        <EmptyState title="This server does not run notebooks" command="clew up" />
      )}
      {defaults.isLoading && <Skeleton />}
      {defaults.error && <ErrorCard error={defaults.error} retry={defaults.refetch} />}
      {defaults.data && (
        <div className="flex flex-col gap-4">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            {defaults.data.error ? (
              <StateBadge state="error" label="not in use" />
            ) : defaults.data.exists ? (
              <StateBadge state="ready" label="in use" />
            ) : (
              <StateBadge state="pending" label="does not exist" />
            )}
            <code className="font-mono break-all">{defaults.data.path}</code>
          </div>
          {defaults.data.error && (
            <div role="alert" className="rounded-lg border border-failure bg-failure-soft p-4">
              <p className="font-medium break-words">{defaults.data.error}</p>
              <p className="text-quiet">
                The last valid file, or else the built-in defaults, stays in use. Correct the file:
                it is read again at once.
              </p>
            </div>
          )}
          {!defaults.data.exists && (
            <p>The built-in defaults are in use. Write the file to change them:</p>
          )}
          <CodeBlock text={defaults.data.content} label="Defaults of the notebook form" tall />
        </div>
      )}
    </Section>
  );
}
