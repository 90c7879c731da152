import { queryOptions } from "@tanstack/react-query";
import { ApiError, api, fetchJson, request, type Schemas, sendJson, unwrap } from "@/api/client";

export type Pipeline = Schemas["Pipeline"];
export type PipelineVersion = Schemas["PipelineVersion"];
export type Schedule = Schemas["Schedule"];
export type Experiment = Schemas["Experiment"];
export type Activity = Schemas["Activity"];

const KFP = "/apis/v2beta1";
export const MAX_UPLOAD_BYTES = 32 * 2 ** 20;

// Lists show the last run of each entry: `catalogue` is refetched after changes of runs, too.
export const pipelinesQuery = (q = "", archived = false) =>
  queryOptions({
    queryKey: ["catalogue", "pipelines", q, archived],
    queryFn: () => unwrap(api.GET("/api/v1/pipelines", { params: { query: { q, archived } } })),
  });

export const pipelineQuery = (id: string) =>
  queryOptions({
    queryKey: ["catalogue", "pipeline", id],
    queryFn: () => unwrap(api.GET("/api/v1/pipelines/{id}", { params: { path: { id } } })),
  });

/** A compiled version never changes. */
export const versionQuery = (id: string, version: string) =>
  queryOptions({
    queryKey: ["version", id, version],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/pipelines/{id}/versions/{version}", { params: { path: { id, version } } }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const runTemplateQuery = (id: string) =>
  queryOptions({
    queryKey: ["run-template", id],
    queryFn: () => unwrap(api.GET("/api/v1/runs/{id}/template", { params: { path: { id } } })),
  });

export const schedulesQuery = (pipeline?: string) =>
  queryOptions({
    queryKey: ["catalogue", "schedules", pipeline ?? null],
    queryFn: async () =>
      (await unwrap(api.GET("/api/v1/schedules", { params: { query: { pipeline } } }))).schedules,
  });

export const experimentsQuery = queryOptions({
  queryKey: ["catalogue", "experiments"],
  queryFn: async () => (await unwrap(api.GET("/api/v1/experiments"))).experiments,
});

const SHOWN_RUNS = 50;

export interface RunFilter {
  pipeline?: string;
  schedule?: string;
  experiment?: string;
  archived?: boolean;
}

export const runsQuery = (filter: RunFilter) =>
  queryOptions({
    queryKey: ["runs", "of", filter],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/activities", {
          params: { query: { ...filter, type: ["run"], limit: SHOWN_RUNS } },
        }),
      ),
  });

export interface Trigger {
  cron?: string;
  interval?: number;
  starts?: string;
  ends?: string;
}

export const timesQuery = (trigger: Trigger) =>
  queryOptions({
    queryKey: ["schedule-times", trigger],
    queryFn: async () => {
      const query = { ...trigger, count: 3 };
      return (await unwrap(api.GET("/api/v1/schedule-times", { params: { query } }))).times;
    },
    staleTime: 5_000,
  });

/** What is the same for a run now and for a schedule. */
export interface StartRequest {
  pipeline?: string;
  version?: string;
  spec?: string;
  name: string;
  description: string;
  experiment?: string;
  parameters: Record<string, unknown>;
  reuse: boolean;
}

export interface ScheduleRequest extends StartRequest, Trigger {
  max_concurrency: number;
  catchup: boolean;
}

/** Start a run. The same key twice starts one run. */
export function startRun(body: StartRequest, key: string): Promise<Schemas["RunWithTasks"]> {
  return send("/api/v1/runs", body, key);
}

export function createSchedule(body: ScheduleRequest, key: string): Promise<Schedule> {
  return send("/api/v1/schedules", body, key);
}

function send<T>(path: string, body: unknown, key: string): Promise<T> {
  return fetchJson<T>(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify(body),
  });
}

/** A random key. `crypto.randomUUID` exists only with HTTPS and on this machine. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

interface Uploaded {
  pipeline_id: string;
  pipeline_version_id?: string;
}

/** Upload a compiled pipeline: a new one, or a version of `pipeline`. */
export async function uploadPipeline(
  file: File,
  fields: { name: string; description: string; pipeline?: string },
): Promise<Uploaded> {
  if (file.size > MAX_UPLOAD_BYTES) {
    throw new ApiError(
      413,
      "too-large",
      `${file.name} is larger than 32 MB.`,
      "A compiled pipeline is usually a few hundred KB. Does it contain data? Read data in a task.",
    );
  }
  const { name, description, pipeline } = fields;
  const query = new URLSearchParams({ name, description });
  if (pipeline) query.set("pipelineid", pipeline);
  const route = pipeline ? "upload_version" : "upload";
  const body = new FormData();
  body.set("uploadfile", file);
  const address = new URL(`${KFP}/pipelines/${route}?${query}`, window.location.origin);
  const response = await request(new Request(address, { method: "POST", body }));
  return response.json();
}

export const renamePipeline = (id: string, display_name: string, description: string) =>
  sendJson("PATCH", `${KFP}/pipelines/${id}`, { display_name, description });
export const archivePipeline = (id: string, archived: boolean) =>
  unwrap(
    api.PUT("/api/v1/pipelines/{id}/archived", { params: { path: { id } }, body: { archived } }),
  );
export const deletePipeline = (id: string) =>
  sendJson("DELETE", `${KFP}/pipelines/${id}?cascade=true`);
export const deleteVersion = (id: string, version: string) =>
  sendJson("DELETE", `${KFP}/pipelines/${id}/versions/${version}`);

export const setEnabled = (schedule: string, enabled: boolean) =>
  sendJson("POST", `${KFP}/recurringruns/${schedule}:${enabled ? "enable" : "disable"}`);
export const deleteSchedule = (schedule: string) =>
  sendJson("DELETE", `${KFP}/recurringruns/${schedule}`);

export const createExperiment = (display_name: string, description: string) =>
  sendJson<{ experiment_id: string }>("POST", `${KFP}/experiments`, { display_name, description });
export const archiveExperiment = (id: string, archived: boolean) =>
  sendJson("POST", `${KFP}/experiments/${id}:${archived ? "archive" : "unarchive"}`);
export const deleteExperiment = (id: string) => sendJson("DELETE", `${KFP}/experiments/${id}`);

/** Archive or unarchive a run that a server was asked for. */
export const archiveRun = (uid: string, archived: boolean) =>
  sendJson("POST", `${KFP}/runs/${uid}:${archived ? "archive" : "unarchive"}`);
