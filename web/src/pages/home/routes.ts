import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";

export const homeRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/",
    component: lazyRouteComponent(() => import("./home-page"), "HomePage"),
  }),
] as const;
