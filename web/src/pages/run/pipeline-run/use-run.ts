import { useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";

export type Run = Schemas["RunWithTasks"];

const POLL_MILLISECONDS = 1500;
const FINAL = ["succeeded", "failed", "canceled"];

export function isActive(run: Pick<Run, "state">): boolean {
  return !FINAL.includes(run.state);
}

/** A pipeline run with its tasks; asked again while it runs, also if its process was killed. */
export function useRun(id: string) {
  return useQuery({
    queryKey: ["runs", "one", id],
    queryFn: () => unwrap(api.GET("/api/v1/runs/{id}", { params: { path: { id } } })),
    refetchInterval: ({ state }) =>
      state.data && !isActive(state.data) ? false : POLL_MILLISECONDS,
  });
}

/** What the run was started with: the compiled pipeline. It never changes. */
export function useTemplate(uid: string | undefined) {
  return useQuery({
    queryKey: ["run-template", uid],
    queryFn: () =>
      unwrap(api.GET("/api/v1/runs/{id}/template", { params: { path: { id: uid ?? "" } } })),
    enabled: uid !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
}
