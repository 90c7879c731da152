import { useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";

export type Execution = Schemas["ExecutionSummary"];

const POLL_MILLISECONDS = 2000;

/** The metrics that an execution wrote, and the line that says why it failed. */
export function useMeasured(uid: string) {
  return useQuery({
    queryKey: ["activities", "one", uid],
    queryFn: async () => {
      const query = { q: uid, type: ["execution" as const] };
      const page = await unwrap(api.GET("/api/v1/activities", { params: { query } }));
      const found = page.activities.find((one) => one.uid === uid);
      return { metrics: found?.metrics ?? {}, error: found?.error, unmeasured: page.unmeasured };
    },
    refetchInterval: ({ state }) => (state.data?.unmeasured ? POLL_MILLISECONDS : false),
  });
}

/** An execution; asked again while it runs, because a killed command changes nothing in the record. */
export function useExecution(id: string, enabled = true) {
  return useQuery({
    queryKey: ["executions", "one", id],
    queryFn: () => unwrap(api.GET("/api/v1/executions/{id}", { params: { path: { id } } })),
    refetchInterval: ({ state }) => (state.data?.state === "running" ? POLL_MILLISECONDS : false),
    enabled,
  });
}
