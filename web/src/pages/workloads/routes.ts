import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";
import { DETAIL_TABS, type DetailTab } from "./details/detail-tabs";
import { readListSearch, readText } from "./list/search";

function readDetailSearch(search: Record<string, unknown>): {
  tab?: DetailTab;
  container?: string;
} {
  const tab = DETAIL_TABS.find((one) => one === search.tab);
  return { tab: tab === "overview" ? undefined : tab, container: readText(search.container) };
}

function readNewSearch(search: Record<string, unknown>): { namespace?: string } {
  return { namespace: readText(search.namespace) };
}

const opening = () => import("./details/opening-page");

const notebookRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/notebooks",
    validateSearch: readListSearch,
    component: lazyRouteComponent(() => import("./notebooks/notebooks-page"), "NotebooksPage"),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/notebooks/new",
    validateSearch: readNewSearch,
    component: lazyRouteComponent(() => import("./notebooks/new-notebook-page"), "NewNotebookPage"),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/notebooks/$namespace/$name",
    validateSearch: readDetailSearch,
    component: lazyRouteComponent(() => import("./notebooks/notebook-page"), "NotebookPage"),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/notebooks/$namespace/$name/edit",
    component: lazyRouteComponent(
      () => import("./notebooks/edit-notebook-page"),
      "EditNotebookPage",
    ),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/notebooks/$namespace/$name/open",
    component: lazyRouteComponent(opening, "OpenNotebook"),
  }),
] as const;

const tensorboardRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/tensorboards",
    validateSearch: readListSearch,
    component: lazyRouteComponent(
      () => import("./tensorboards/tensorboards-page"),
      "TensorboardsPage",
    ),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/tensorboards/new",
    validateSearch: (
      search: Record<string, unknown>,
    ): { namespace?: string; run?: string; volume?: string; logspath?: string } => ({
      ...readNewSearch(search),
      run: readText(search.run),
      volume: readText(search.volume),
      logspath: readText(search.logspath),
    }),
    component: lazyRouteComponent(
      () => import("./tensorboards/new-tensorboard-page"),
      "NewTensorboardPage",
    ),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/tensorboards/$namespace/$name",
    validateSearch: readDetailSearch,
    component: lazyRouteComponent(
      () => import("./tensorboards/tensorboard-page"),
      "TensorboardPage",
    ),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/tensorboards/$namespace/$name/open",
    component: lazyRouteComponent(opening, "OpenTensorboard"),
  }),
] as const;

const volumeRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/volumes",
    validateSearch: readListSearch,
    component: lazyRouteComponent(() => import("./volumes/volumes-page"), "VolumesPage"),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/volumes/new",
    validateSearch: readNewSearch,
    component: lazyRouteComponent(() => import("./volumes/new-volume-page"), "NewVolumePage"),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/volumes/$namespace/$name",
    validateSearch: readDetailSearch,
    component: lazyRouteComponent(() => import("./volumes/volume-page"), "VolumePage"),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/volumes/$namespace/$name/open",
    component: lazyRouteComponent(opening, "OpenVolume"),
  }),
] as const;

export const workloadRoutes = [...notebookRoutes, ...tensorboardRoutes, ...volumeRoutes] as const;
