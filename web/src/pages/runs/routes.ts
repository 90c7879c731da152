import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";
import { validateRunsSearch } from "./search";

export const runListRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/runs",
    validateSearch: validateRunsSearch,
    component: lazyRouteComponent(() => import("./runs-page"), "RunsPage"),
  }),
] as const;
