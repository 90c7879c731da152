import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

/** What the server reports changes of. The first part of each query key is such a topic. */
export type Topic = "executions" | "runs" | "pipelines" | "workloads" | "repeats" | "settings";

type Versions = Partial<Record<Topic, string | number>>;

/** Queries of one topic that show parts of another. */
const ALSO: Partial<Record<Topic, string[]>> = {
  executions: ["activities", "overview", "lineage"],
  runs: ["activities", "overview"],
  repeats: ["overview"],
  workloads: ["overview", "backend"],
};

/** Refetch the queries of the topics whose version is new. */
export function invalidateChanged(client: QueryClient, seen: Versions, now: Versions): void {
  const topics = (Object.keys(now) as Topic[]).filter((topic) => seen[topic] !== now[topic]);
  const keys = new Set(topics.flatMap((topic) => [topic, ...(ALSO[topic] ?? [])]));
  for (const key of keys) client.invalidateQueries({ queryKey: [key] });
}

/**
 * Follow the server's changes while the app is open. After a lost connection the browser reconnects
 * by itself; the server then sends the versions of all topics first, so that nothing is missed.
 */
export function useChanges(): void {
  const client = useQueryClient();
  useEffect(() => {
    const source = new EventSource("/api/v1/changes");
    let seen: Versions | null = null;
    source.onmessage = (event) => {
      const now: Versions = JSON.parse(event.data).topics;
      if (seen) invalidateChanged(client, seen, now);
      seen = now;
    };
    return () => source.close();
  }, [client]);
}
