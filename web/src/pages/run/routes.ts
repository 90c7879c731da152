import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";
import { validateRunSearch } from "./search";

const page = lazyRouteComponent(() => import("./run-page"), "RunPage");

export const runRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/runs/$id",
    validateSearch: validateRunSearch,
    component: page,
  }),
] as const;
