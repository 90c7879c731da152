import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/root-route";

type Search = Record<string, unknown>;

function text(value: unknown): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && value ? value : undefined;
}

function oneOf<T extends string>(values: readonly T[], value: unknown): T | undefined {
  return values.find((one) => one === value);
}

export const PIPELINE_TABS = ["graph", "runs", "schedules", "versions", "source"] as const;
export type PipelineTab = (typeof PIPELINE_TABS)[number];

export interface StartSearch {
  pipeline?: string;
  version?: string;
  /** The id of a run to start another one like. */
  from?: string;
  experiment?: string;
  when?: "schedule";
}

/** What pages with a list of runs have in their URLs. */
export interface RunsSearch {
  /** The ids of the selected runs. */
  marked?: string;
  archivedRuns?: true;
}

function runsSearch(search: Search): RunsSearch {
  const archived = search.archivedRuns === true || search.archivedRuns === "true";
  return { marked: text(search.marked), archivedRuns: archived || undefined };
}

export interface PipelinesSearch {
  q?: string;
  /** Those in the archive are shown, too. */
  archived?: true;
  /** The upload dialog is open. */
  upload?: string;
}

export interface PipelineSearch extends RunsSearch {
  version?: string;
  tab?: PipelineTab;
  /** The selected task. */
  task?: string;
  /** Groups that are not open, or not closed, as they are at first. */
  toggled?: string;
  upload?: string;
}

export interface SchedulesSearch extends RunsSearch {
  schedule?: string;
}

export interface ExperimentsSearch extends RunsSearch {
  experiment?: string;
  archived?: true;
  create?: true;
}

const pipelines = createRoute({
  getParentRoute: () => rootRoute,
  path: "/pipelines",
  validateSearch: (search: Search): PipelinesSearch => ({
    archived: search.archived === true || search.archived === "true" || undefined,
    q: text(search.q),
    upload: text(search.upload),
  }),
  component: lazyRouteComponent(() => import("./pipelines-page"), "PipelinesPage"),
});

const start = createRoute({
  getParentRoute: () => rootRoute,
  path: "/pipelines/start",
  validateSearch: (search: Search): StartSearch => ({
    pipeline: text(search.pipeline),
    version: text(search.version),
    from: text(search.from),
    experiment: text(search.experiment),
    when: oneOf(["schedule"], search.when),
  }),
  component: lazyRouteComponent(() => import("./start/start-page"), "StartPage"),
});

const pipeline = createRoute({
  getParentRoute: () => rootRoute,
  path: "/pipelines/$id",
  validateSearch: (search: Search): PipelineSearch => ({
    version: text(search.version),
    tab: oneOf(PIPELINE_TABS, search.tab),
    task: text(search.task),
    toggled: text(search.toggled),
    ...runsSearch(search),
    upload: text(search.upload),
  }),
  component: lazyRouteComponent(() => import("./pipeline/pipeline-page"), "PipelinePage"),
});

const schedules = createRoute({
  getParentRoute: () => rootRoute,
  path: "/schedules",
  validateSearch: (search: Search): SchedulesSearch => ({
    schedule: text(search.schedule),
    ...runsSearch(search),
  }),
  component: lazyRouteComponent(() => import("./schedules/schedules-page"), "SchedulesPage"),
});

const experiments = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments",
  validateSearch: (search: Search): ExperimentsSearch => ({
    ...runsSearch(search),
    experiment: text(search.experiment),
    archived: search.archived === true || search.archived === "true" || undefined,
    create: search.create === true || search.create === "true" || undefined,
  }),
  component: lazyRouteComponent(() => import("./experiments-page"), "ExperimentsPage"),
});

export const pipelineRoutes = [start, pipelines, pipeline, schedules, experiments] as const;
