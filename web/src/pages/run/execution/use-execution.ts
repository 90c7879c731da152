import { useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";

export type Execution = Schemas["ExecutionSummary"];

const POLL_MILLISECONDS = 2000;

/** An execution; asked again while it runs, because a killed command changes nothing in the record. */
export function useExecution(id: string, enabled = true) {
  return useQuery({
    queryKey: ["executions", "one", id],
    queryFn: () => unwrap(api.GET("/api/v1/executions/{id}", { params: { path: { id } } })),
    refetchInterval: ({ state }) => (state.data?.state === "running" ? POLL_MILLISECONDS : false),
    enabled,
  });
}
