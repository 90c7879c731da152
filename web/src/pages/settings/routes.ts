import { createRoute, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";

export const settingsRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/settings",
    beforeLoad: () => {
      throw redirect({ to: "/settings/$section", params: { section: "appearance" } });
    },
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/settings/$section",
    component: lazyRouteComponent(() => import("./settings-page"), "SettingsPage"),
  }),
] as const;
