import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";

export const runRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/runs/$id" }),
] as const;
