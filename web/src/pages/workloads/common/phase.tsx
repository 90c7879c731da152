import { StateBadge } from "@/components/state-badge";
import type { ResourceStatus } from "../api/documents";

/** What users call the phases of Kubeflow. */
const LABELS: Record<string, string> = {
  ready: "running",
  waiting: "starting",
  warning: "problem",
  error: "problem",
  unavailable: "starting",
  uninitialized: "not open",
  terminating: "being deleted",
  stopped: "stopped",
};

/** Messages that say nothing beyond the label. */
const PLAIN = new Set(["Running", "Stopped", "Bound"]);

export function phaseLabel(status: ResourceStatus, collection = "notebooks"): string {
  if (collection === "volumes") {
    if (status.phase === "ready") return "ready";
    if (status.phase === "unavailable") return "not used yet";
    if (status.phase === "waiting") return "being made";
  }
  if (status.phase === "waiting" && status.state === "Stopping") return "stopping";
  return LABELS[status.phase] ?? status.phase;
}

/** The badge of a notebook's or a TensorBoard's phase, as its page calls it. */
export function PhaseBadge({ phase }: { phase: string }) {
  return (
    <StateBadge
      state={phase === "unavailable" ? "waiting" : phase}
      label={LABELS[phase] ?? phase}
    />
  );
}

/** The badge of a state, and its reason in plain words. */
export function Phase({
  status,
  collection,
  wrap = false,
}: {
  status: ResourceStatus;
  collection?: string;
  /** Whether a long reason may take several lines. */
  wrap?: boolean;
}) {
  const badge =
    status.phase === "unavailable" && collection !== "volumes" ? "waiting" : status.phase;
  const reason = PLAIN.has(status.message) ? "" : status.message;
  return (
    <span
      className={`inline-flex min-w-0 max-w-full items-center gap-2 align-middle ${wrap ? "flex-wrap" : ""}`}
    >
      <StateBadge state={badge} label={phaseLabel(status, collection)} />
      {reason && (
        <span className={wrap ? "min-w-0 break-words" : "truncate text-quiet"} title={reason}>
          {reason}
        </span>
      )}
    </span>
  );
}
