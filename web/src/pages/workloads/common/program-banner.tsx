import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { Button } from "@/components/button";
import { ErrorCard } from "@/components/feedback";
import { StateBadge } from "@/components/state-badge";
import { install } from "../api/actions";
import type { BackendInfo, ProgramInstallation } from "../api/documents";
import { installationQuery } from "../api/queries";

const LABELS: Record<string, string> = { jupyterlab: "JupyterLab", tensorboard: "TensorBoard" };

/** Offers to install a program that this machine lacks, and shows the progress. */
export function ProgramBanner({ name, backend }: { name: string; backend: BackendInfo }) {
  const program = backend.programs.find((one) => one.name === name);
  if (!program || program.installed) return null;
  return <MissingProgram name={name} canInstall={program.can_install} />;
}

function MissingProgram({ name, canInstall }: { name: string; canInstall: boolean }) {
  const client = useQueryClient();
  const { data: found } = useQuery(installationQuery(name));
  const start = useMutation({
    mutationFn: () => install(name),
    onSuccess: (now) => client.setQueryData(installationQuery(name).queryKey, now),
  });
  const label = LABELS[name] ?? name;
  const state = found?.state ?? "missing";
  return (
    <section
      aria-label={`Installation of ${label}`}
      className="flex flex-col gap-3 rounded-lg border border-warning bg-warning-soft p-4"
    >
      <div className="flex flex-wrap items-center gap-3">
        <div className="min-w-0 flex-1 basis-60">
          <p className="font-medium">{label} is not installed on this machine.</p>
          <p>{explain(label, state, canInstall)}</p>
        </div>
        {state === "installing" ? (
          <StateBadge state="installing" />
        ) : (
          canInstall && (
            <Button look="primary" disabled={start.isPending} onClick={() => start.mutate()}>
              <Download size={15} aria-hidden />
              {state === "failed" ? "Try again" : `Install ${label}`}
            </Button>
          )
        )}
      </div>
      {start.error && <ErrorCard error={start.error} />}
      {found && <Progress found={found} />}
    </section>
  );
}

function explain(label: string, state: string, canInstall: boolean): string {
  if (state === "installing") return "It is being installed with pip. This takes a minute or two.";
  if (!canInstall) return `Install it with: pip install ${label.toLowerCase()}`;
  return "Clew can install it with pip; nothing else on the machine changes.";
}

function Progress({ found }: { found: ProgramInstallation }) {
  const failed = found.state === "failed";
  if (!failed && found.state !== "installing") return null;
  return (
    <>
      {failed && <p role="alert">The installation failed: {found.error}</p>}
      {found.output && (
        <details open={failed}>
          <summary className="truncate font-mono text-sm">{lastLine(found.output)}</summary>
          <pre
            // biome-ignore lint/a11y/noNoninteractiveTabindex: so that the keyboard can scroll it
            tabIndex={0}
            className="mt-2 max-h-72 overflow-auto rounded-md border border-line bg-surface p-3 font-mono text-sm"
          >
            {found.output}
          </pre>
        </details>
      )}
    </>
  );
}

function lastLine(output: string): string {
  return output.trimEnd().split("\n").at(-1) ?? "";
}
