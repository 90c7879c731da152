import createClient from "openapi-fetch";
import { reportConnection } from "./connection";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** An error response of the server: what went wrong, and what to do. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** The value of the cookie that Kubeflow's routes want repeated in a header (CSRF protection). */
export function csrfToken(cookies: string = document.cookie): string {
  return /(?:^|;\s*)XSRF-TOKEN=([^;]*)/.exec(cookies)?.[1] ?? "";
}

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Add what every request needs, and turn error responses into `ApiError`s. */
export async function request(input: Request): Promise<Response> {
  if (!SAFE_METHODS.has(input.method)) input.headers.set("X-XSRF-TOKEN", csrfToken());
  let response: Response;
  try {
    response = await fetch(input);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    reportConnection("lost");
    throw new ApiError(
      0,
      "unreachable",
      "The server cannot be reached.",
      "Is it still running? Start it with: clew up",
    );
  }
  reportConnection(isRefusedByServer(response) ? "logged-out" : "connected");
  if (!response.ok) throw await readError(response);
  return response;
}

/** Whether the server does not know the session. Another service's 401, passed on, says less. */
function isRefusedByServer(response: Response): boolean {
  return response.status === 401 && response.headers.get("WWW-Authenticate") === "Bearer";
}

/** Reads all three shapes: ours (problem+json), Kubeflow's web apps', and Kubeflow Pipelines'. */
async function readError(response: Response): Promise<ApiError> {
  const text = await response.text();
  let body: Record<string, unknown> = {};
  try {
    body = JSON.parse(text);
  } catch {
    // Not JSON: a proxy's page, for instance. The status line says enough.
  }
  const pick = (...names: string[]) =>
    names.map((name) => body[name]).find((value): value is string => typeof value === "string");
  const message =
    pick("title", "log", "message", "error") ?? `${response.status} ${response.statusText}`;
  const code = pick("code") ?? String(response.status);
  const detail = pick("hint", "detail") ?? null;
  return new ApiError(response.status, code, message, detail === message ? null : detail);
}

/** The typed client of `/api/v1` and of Kubeflow's web-app routes. Rejects with `ApiError`. */
export const api = createClient<paths>({ baseUrl: window.location.origin, fetch: request });

/** The `data` of a response of `api`, which never has an error: those reject. */
export async function unwrap<T>(response: Promise<{ data?: T }>): Promise<T> {
  return (await response).data as T;
}

/** Fetch JSON from a route that OpenAPI does not describe, such as those of Kubeflow Pipelines. */
export async function fetchJson<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await request(new Request(new URL(path, window.location.origin), init));
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
}

/** Fetch a text, such as a log. */
export async function fetchText(path: string, init?: RequestInit): Promise<string> {
  const response = await request(new Request(new URL(path, window.location.origin), init));
  return response.text();
}

/** Send JSON to such a route. */
export function sendJson<T>(method: string, path: string, body?: unknown): Promise<T> {
  return fetchJson<T>(path, {
    method,
    headers: { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
}
