import { useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";

export type RepeatRequest = Schemas["RepeatRequest"];

const POLL_MILLISECONDS = 1000;

export function isActive({ state }: { state: string }): boolean {
  return state === "queued" || state === "running";
}

/** The repeats that were asked for of the execution or run with this uid, newest first. */
export function useRepeats(uid: string) {
  return useQuery({
    queryKey: ["repeats", "of", uid],
    queryFn: async () => {
      const query = { target: uid, limit: 100 };
      return (await unwrap(api.GET("/api/v1/repeats", { params: { query } }))).repeats;
    },
  });
}

/** One repeat with its output and result; asked again while it is in progress. */
export function useRepeat(id: string) {
  return useQuery({
    queryKey: ["repeats", "one", id],
    queryFn: () => unwrap(api.GET("/api/v1/repeats/{id}", { params: { path: { id } } })),
    refetchInterval: ({ state }) =>
      state.data && !isActive(state.data) ? false : POLL_MILLISECONDS,
  });
}
