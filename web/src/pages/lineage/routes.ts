import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";
import { parseView } from "./view";

export const lineageRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/lineage",
    validateSearch: parseView,
    component: lazyRouteComponent(() => import("./lineage-page"), "LineagePage"),
  }),
] as const;
