import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { ApiError, fetchJson } from "./client";
import { reportConnection } from "./connection";

/** What the server reports changes of. The first part of each query key is such a topic. */
export type Topic =
  | "executions"
  | "lineage"
  | "runs"
  | "pipelines"
  | "workloads"
  | "repeats"
  | "settings";

type Versions = Partial<Record<Topic, string | number>>;

/** Queries of one topic that show parts of another. */
const ALSO: Partial<Record<Topic, string[]>> = {
  executions: ["activities", "overview", "lineage"],
  runs: ["activities", "overview", "catalogue"],
  pipelines: ["catalogue"],
  repeats: ["overview"],
  workloads: ["overview", "backend"],
};

/** Refetch the queries of the topics whose version is new. */
export function invalidateChanged(client: QueryClient, seen: Versions, now: Versions): void {
  const topics = (Object.keys(now) as Topic[]).filter((topic) => seen[topic] !== now[topic]);
  const keys = new Set(topics.flatMap((topic) => [topic, ...(ALSO[topic] ?? [])]));
  for (const key of keys) client.invalidateQueries({ queryKey: [key] });
}

const FIRST_RETRY_MILLISECONDS = 1000;
const LAST_RETRY_MILLISECONDS = 10_000;

/**
 * Follow the server's changes while the app is open. After a lost connection everything is read
 * again: requests may have failed meanwhile, and the server may be a new version.
 *
 * A hidden window has no stream: a browser has six connections to a server for all windows together,
 * so a seventh window would wait for ever. What changed meanwhile is read when it is shown again.
 *
 * A browser reconnects by itself only if the server does not answer at all. It gives up after an
 * error, such as one of a proxy in front of the server, so that is retried here.
 */
export function useChanges(): void {
  const client = useQueryClient();
  useEffect(() => follow(client), [client]);
}

function isHidden(): boolean {
  return document.visibilityState === "hidden";
}

function follow(client: QueryClient): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let seen: Versions = {};
  let interrupted = true;
  /** The page was opened in a hidden window: what it has read since then may have changed. */
  let opened = false;
  let delay = FIRST_RETRY_MILLISECONDS;

  function connect() {
    source = new EventSource("/api/v1/changes");
    source.onmessage = (event) => {
      const now: Versions = JSON.parse(event.data).topics;
      if (!interrupted) invalidateChanged(client, seen, now);
      else if (opened || Object.keys(seen).length) client.invalidateQueries();
      opened = false;
      seen = now;
      interrupted = false;
      delay = FIRST_RETRY_MILLISECONDS;
      reportConnection("connected");
    };
    source.onerror = () => {
      interrupted = true;
      // Every attempt of the browser fails with an event of its own: do not begin to wait again.
      timer ??= setTimeout(check, delay);
      delay = Math.min(LAST_RETRY_MILLISECONDS, delay * 2);
    };
  }

  /** Ask why the stream broke off: the answer says whether the session still counts. */
  async function check() {
    timer = undefined;
    try {
      await fetchJson("/api/v1/project");
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        source?.close();
        return;
      }
    }
    if (!isHidden() && source?.readyState === EventSource.CLOSED) connect();
  }

  function stop() {
    clearTimeout(timer);
    timer = undefined;
    source?.close();
  }

  function followWhileShown() {
    stop();
    opened ||= isHidden() && Object.keys(seen).length === 0;
    if (!isHidden()) connect();
  }

  followWhileShown();
  document.addEventListener("visibilitychange", followWhileShown);
  return () => {
    document.removeEventListener("visibilitychange", followWhileShown);
    stop();
  };
}
