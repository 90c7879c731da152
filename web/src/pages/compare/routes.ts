import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";

export const compareRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/compare" }),
] as const;
