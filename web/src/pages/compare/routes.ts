import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";
import { validateCompareSearch } from "./search";

export const compareRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/compare",
    validateSearch: validateCompareSearch,
  }),
] as const;
