import { CircleAlert, Info } from "lucide-react";
import { EmptyState } from "@/components/feedback";
import { Time } from "@/components/format/time";
import type { WorkloadEvent } from "../api/documents";

/** What happened to a resource, newest first. */
export function EventList({ events }: { events: readonly WorkloadEvent[] }) {
  if (events.length === 0) {
    return (
      <EmptyState title="Nothing was reported lately">Events are kept for an hour.</EmptyState>
    );
  }
  return (
    <ol className="divide-y divide-line rounded-lg border border-line bg-surface">
      {events.map((event, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: events have no identity
        <li key={index} className="flex flex-wrap items-start gap-x-3 gap-y-1 px-4 py-2.5">
          {event.type === "Warning" ? (
            <CircleAlert size={16} className="mt-0.5 shrink-0 text-warning" aria-label="Warning" />
          ) : (
            <Info size={16} className="mt-0.5 shrink-0 text-quiet" aria-label="Information" />
          )}
          <div className="min-w-0 flex-1 basis-60 break-words">
            <span className="font-medium">{event.reason}</span>
            {event.count > 1 && <span className="text-quiet"> ({event.count} times)</span>}
            <p>{event.message}</p>
          </div>
          <span className="text-quiet">
            <Time at={event.at} />
          </span>
        </li>
      ))}
    </ol>
  );
}
