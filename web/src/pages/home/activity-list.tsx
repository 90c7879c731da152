import { Link } from "@tanstack/react-router";
import type { Schemas } from "@/api/client";
import { Duration, Time } from "@/components/format/time";
import { StateBadge } from "@/components/state-badge";
import { formatValue } from "@/pages/runs/values";

type Activity = Schemas["Activity"] | Schemas["Result"];

/** Executions and runs, each with its reason or its main metric. */
export function ActivityList({
  activities,
  empty,
}: {
  activities: readonly Activity[];
  empty: string;
}) {
  if (activities.length === 0) return <p className="text-quiet">{empty}</p>;
  return (
    <ul className="-my-2 flex flex-col divide-y divide-line">
      {activities.map((activity) => (
        <li key={activity.uid}>
          <Entry activity={activity} />
        </li>
      ))}
    </ul>
  );
}

function Entry({ activity }: { activity: Activity }) {
  const metric = "main_metric" in activity ? activity.main_metric : null;
  const title = activity.name ?? (activity.command.join(" ") || activity.id);
  return (
    <div className="flex items-center gap-3 py-2">
      <div className="min-w-0 flex-1">
        <Link
          to={`/runs/${activity.id}` as string}
          className="flex min-w-0 items-baseline gap-2 hover:underline"
        >
          {/^[er]\d+$/.test(activity.id) && (
            <span className="shrink-0 font-mono text-quiet">{activity.id}</span>
          )}
          <bdi className="truncate font-medium" title={title}>
            {title}
          </bdi>
        </Link>
        {activity.error && (
          <p className="line-clamp-2 text-failure wrap-anywhere" title={activity.error}>
            <bdi>{activity.error}</bdi>
          </p>
        )}
        <p className="mt-0.5 flex flex-wrap items-center gap-x-2 text-quiet">
          <StateBadge state={activity.state} />
          <Time at={activity.ended ?? activity.started} />
          {activity.ended && (
            <span>
              after <Duration seconds={activity.seconds} />
            </span>
          )}
        </p>
      </div>
      {metric && (
        <div className="max-w-48 shrink-0 text-right">
          <p className="font-semibold tabular-nums">{formatValue(metric.value)}</p>
          <p className="truncate text-quiet" title={metric.name}>
            {metric.name}
          </p>
        </div>
      )}
    </div>
  );
}
