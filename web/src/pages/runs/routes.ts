import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";

export const runListRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/runs" }),
] as const;
