import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";

export const lineageRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/lineage",
    validateSearch: (search: Record<string, unknown>): { target?: string } => ({
      target: typeof search.target === "string" ? search.target : undefined,
    }),
  }),
] as const;
