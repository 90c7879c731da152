import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Navigate } from "@tanstack/react-router";
import { lazy } from "react";
import { ApiError, api, unwrap } from "@/api/client";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Page } from "@/components/page";

const ExecutionPage = lazy(() =>
  import("./execution/execution-page").then((m) => ({ default: m.ExecutionPage })),
);
const PipelineRunPage = lazy(() =>
  import("./pipeline-run/pipeline-run-page").then((m) => ({ default: m.PipelineRunPage })),
);

const route = getRouteApi("/runs/$id");

/** The page of an execution (`e1`), a pipeline run (`r1`), a task (`r1/train`), a name or a uid. */
export function RunPage() {
  const { id } = route.useParams();
  const search = route.useSearch();
  if (/^e\d+$/.test(id)) return <ExecutionPage key={id} id={id} />;
  if (/^r\d+$/.test(id)) return <PipelineRunPage key={id} id={id} />;
  const task = /^(r\d+|[0-9a-f]{32})\/(.+)$/.exec(id);
  if (task)
    return (
      <Navigate
        to="/runs/$id"
        params={{ id: task[1] as string }}
        search={{ ...search, task: task[2] }}
        replace
      />
    );
  return <Resolved key={id} id={id} />;
}

/** A name is that of an execution. A uid may be that of a run, as the stock KFP client prints it. */
function Resolved({ id }: { id: string }) {
  const search = route.useSearch();
  const found = useQuery({
    queryKey: ["runs", "resolve", id],
    queryFn: async () => {
      const params = { path: { id } };
      const uid = id.replaceAll("-", "");
      if (/^[0-9a-f]{32}$/.test(uid)) {
        try {
          const run = await unwrap(api.GET("/api/v1/runs/{id}", { params: { path: { id: uid } } }));
          return { isRun: true, id: run.id ?? run.uid };
        } catch (error) {
          if (!(error instanceof ApiError) || error.status !== 404) throw error;
        }
      }
      const execution = await unwrap(api.GET("/api/v1/executions/{id}", { params }));
      return { isRun: false, id: execution.id ?? execution.uid };
    },
  });
  if (found.error)
    return (
      <Page title={id}>
        {found.error instanceof ApiError && found.error.status === 404 ? (
          <EmptyState title="There is no such run" command="clew list">
            It may have been deleted, or it belongs to another project.
          </EmptyState>
        ) : (
          <ErrorCard error={found.error} retry={() => found.refetch()} />
        )}
      </Page>
    );
  if (!found.data)
    return (
      <Page title="Run">
        <Skeleton lines={8} />
      </Page>
    );
  if (found.data.id !== id && found.data.id.length < 32)
    return <Navigate to="/runs/$id" params={{ id: found.data.id }} search={search} replace />;
  return found.data.isRun ? (
    <PipelineRunPage id={found.data.id} />
  ) : (
    <ExecutionPage id={found.data.id} />
  );
}
