import { createRoute, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";

/** The sections of the page, which its addresses name. */
export const SECTIONS = ["tokens", "remotes", "culling", "appearance", "administration", "about"];

function openFirst(): never {
  throw redirect({ to: "/settings/$section", params: { section: "tokens" }, replace: true });
}

export const settingsRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/settings", beforeLoad: openFirst }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/settings/$section",
    beforeLoad: ({ params }) => {
      if (!SECTIONS.includes(params.section)) openFirst();
    },
    component: lazyRouteComponent(() => import("./settings-page"), "SettingsPage"),
  }),
] as const;
