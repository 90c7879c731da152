import { createRouter } from "@tanstack/react-router";
import { ErrorCard } from "@/components/feedback";
import { compareRoutes } from "@/pages/compare/routes";
import { homeRoutes } from "@/pages/home/routes";
import { lineageRoutes } from "@/pages/lineage/routes";
import { pipelineRoutes } from "@/pages/pipelines/routes";
import { runRoutes } from "@/pages/run/routes";
import { runListRoutes } from "@/pages/runs/routes";
import { settingsRoutes } from "@/pages/settings/routes";
import { workloadRoutes } from "@/pages/workloads/routes";
import { rootRoute } from "@/root-route";

const routeTree = rootRoute.addChildren([
  ...homeRoutes,
  ...runListRoutes,
  ...runRoutes,
  ...compareRoutes,
  ...pipelineRoutes,
  ...lineageRoutes,
  ...workloadRoutes,
  ...settingsRoutes,
]);

export const router = createRouter({
  routeTree,
  defaultPreload: "intent",
  defaultErrorComponent: ({ error, reset }) => (
    <div className="p-6">
      <ErrorCard error={error} retry={reset} />
    </div>
  ),
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
