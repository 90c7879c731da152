import { createRouter } from "@tanstack/react-router";
import { ErrorCard } from "@/components/feedback";
import { Page } from "@/components/page";
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
  scrollRestoration: true,
  defaultErrorComponent: ({ error, reset }) => (
    <Page title="This page failed">
      <ErrorCard error={error} retry={reset} />
      <p className="text-quiet">
        If it fails again, <a href={window.location.href}>reload the app</a>: the server may have a
        new version. Errors of the server are in its log.
      </p>
    </Page>
  ),
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
