import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";
import { validateCompareSearch } from "./search";

export const compareRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/compare",
    validateSearch: validateCompareSearch,
    component: lazyRouteComponent(() => import("./compare-page"), "ComparePage"),
  }),
] as const;
