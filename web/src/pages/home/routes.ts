import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { readText } from "@/pages/workloads/list/search";
import { rootRoute } from "@/root-route";

export const homeRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/",
    validateSearch: (search: Record<string, unknown>): { namespace?: string } => ({
      namespace: readText(search.namespace),
    }),
    component: lazyRouteComponent(() => import("./home-page"), "HomePage"),
  }),
] as const;
