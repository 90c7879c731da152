import { ApiError, api, sendJson, unwrap } from "@/api/client";

/** `e2` and the like: only executions can be deleted. */
export function isExecution(id: string): boolean {
  return /^e\d+$/.test(id);
}

/** `r2`, or the uid of a run that has not started. */
export function isRun(id: string): boolean {
  return /^(r\d+|[0-9a-f-]{32,36})$/.test(id);
}

export interface Failure {
  id: string;
  error: unknown;
}

/** Do it for each; the rest goes on if one fails. Returns what failed. */
async function forEach(
  ids: string[],
  action: (id: string) => Promise<unknown>,
): Promise<Failure[]> {
  const failures: Failure[] = [];
  for (const id of ids) {
    try {
      await action(id);
    } catch (error) {
      failures.push({ id, error });
    }
  }
  return failures;
}

export function addTags(ids: string[], tags: string[]): Promise<Failure[]> {
  return forEach(ids, (id) =>
    api.POST("/api/v1/executions/{id}/tags", {
      params: { path: { id } },
      body: { add: tags, remove: [] },
    }),
  );
}

export function addNote(ids: string[], note: string): Promise<Failure[]> {
  return forEach(ids, (id) => api.POST("/api/v1/notes", { body: { target: id, notes: { note } } }));
}

/** Only the server's own runs can be archived: those of the command line are records alone. */
export function archiveRuns(ids: string[], archived: boolean): Promise<Failure[]> {
  const action = archived ? "archive" : "unarchive";
  return forEach(ids, async (id) => {
    const run = await unwrap(api.GET("/api/v1/runs/{id}", { params: { path: { id } } }));
    try {
      await sendJson("POST", `/apis/v2beta1/runs/${run.uid}:${action}`);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      throw new ApiError(
        404,
        "not-archivable",
        `${id} cannot be archived.`,
        "It was run on the command line. Only runs that the server started can be archived.",
      );
    }
  });
}

/** All or none. With `dryRun`, only says which. */
export function removeExecutions(ids: string[], dryRun: boolean) {
  return unwrap(api.POST("/api/v1/executions/remove", { body: { ids, dry_run: dryRun } }));
}
