import { useSyncExternalStore } from "react";

/** `lost`: the server does not answer; `logged-out`: it does, and refuses the session. */
export type Connection = "connected" | "lost" | "logged-out";

let state: Connection = "connected";
const listeners = new Set<() => void>();

/**
 * Every request reports whether the server answered, and whether the session still counts.
 *
 * `logged-out` lasts until the page is loaded again: the requests that were refused left the page
 * incomplete, and a stream that was opened before still delivers changes.
 */
export function reportConnection(next: Connection): void {
  if (state === next || state === "logged-out") return;
  state = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => state);
}
