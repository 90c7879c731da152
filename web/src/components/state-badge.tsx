import {
  Ban,
  CircleCheck,
  CircleDashed,
  CirclePause,
  CircleX,
  Hourglass,
  LoaderCircle,
  type LucideIcon,
  Recycle,
  SkipForward,
  TriangleAlert,
} from "lucide-react";
import { classes } from "./classes";

type Tone = "success" | "failure" | "running" | "warning" | "neutral";

/** Each state has an icon and its name: colour alone never carries it. */
const STATES: Record<string, [LucideIcon, Tone]> = {
  running: [LoaderCircle, "running"],
  installing: [LoaderCircle, "running"],
  pending: [CircleDashed, "neutral"],
  queued: [CircleDashed, "neutral"],
  waiting: [Hourglass, "running"],
  done: [CircleCheck, "success"],
  succeeded: [CircleCheck, "success"],
  ready: [CircleCheck, "success"],
  identical: [CircleCheck, "success"],
  equivalent: [CircleCheck, "success"],
  reused: [Recycle, "success"],
  failed: [CircleX, "failure"],
  error: [CircleX, "failure"],
  broken: [TriangleAlert, "failure"],
  different: [TriangleAlert, "warning"],
  warning: [TriangleAlert, "warning"],
  unavailable: [TriangleAlert, "warning"],
  terminating: [Hourglass, "warning"],
  canceled: [Ban, "neutral"],
  skipped: [SkipForward, "neutral"],
  stopped: [CirclePause, "neutral"],
  uninitialized: [CircleDashed, "neutral"],
};

const TONES: Record<Tone, string> = {
  success: "text-success bg-success-soft",
  failure: "text-failure bg-failure-soft",
  running: "text-running bg-running-soft",
  warning: "text-warning bg-warning-soft",
  neutral: "text-quiet bg-sunken",
};

/** The icon of a state, for what is too small for its badge. */
export function stateIcon(state: string): LucideIcon {
  return STATES[state]?.[0] ?? CircleDashed;
}

export function StateBadge({ state, label }: { state: string; label?: string }) {
  const [Icon, tone] = STATES[state] ?? [CircleDashed, "neutral" as Tone];
  return (
    <span
      className={classes(
        "inline-flex items-center gap-1 rounded-full px-2 py-0.5 text-[0.86rem] font-medium whitespace-nowrap",
        TONES[tone],
      )}
    >
      <Icon aria-hidden size={14} className={Icon === LoaderCircle ? "animate-spin" : undefined} />
      {label ?? state}
    </span>
  );
}
