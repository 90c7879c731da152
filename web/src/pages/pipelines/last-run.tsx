import { Link } from "@tanstack/react-router";
import type { Schemas } from "@/api/client";
import { Time } from "@/components/format/time";
import { StateBadge } from "@/components/state-badge";

/** The state and the age of the newest run, with a link to it. */
export function LastRun({ run }: { run: Schemas["LastRun"] | null }) {
  if (!run) return <span className="text-quiet">never</span>;
  return (
    <Link
      to="/runs/$id"
      params={{ id: run.uid }}
      className="inline-flex items-center gap-2 hover:underline"
    >
      <StateBadge state={run.state} /> <Time at={run.created} />
    </Link>
  );
}
