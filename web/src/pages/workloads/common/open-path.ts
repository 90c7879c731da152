import type { BackendInfo } from "../api/documents";
import { part } from "../api/queries";

const PREFIXES = { notebooks: "notebook", tensorboards: "tensorboard", volumes: "pvcviewers" };
export type Openable = keyof typeof PREFIXES;

/** Where a resource is served: the server passes the session on to the origin of the apps. */
export function servedPath(collection: Openable, namespace: string, name: string): string {
  return `/${PREFIXES[collection]}/${part(namespace)}/${part(name)}/`;
}

/** The program that each kind needs on this machine. */
export const PROGRAMS = { notebooks: "jupyterlab", tensorboards: "tensorboard", volumes: null };

/** Whether what a user would see there is not installed. */
export function lacksProgram(backend: BackendInfo, collection: Openable): boolean {
  return backend.programs.some(
    ({ name, installed }) => name === PROGRAMS[collection] && !installed,
  );
}

/** Where a link leads: to the resource, or to a page that waits until it is ready. */
export function openPath(
  backend: BackendInfo | undefined,
  collection: Openable,
  { namespace, name, status }: { namespace: string; name: string; status: { phase: string } },
): string {
  const ready = status.phase === "ready" && !(backend && lacksProgram(backend, collection));
  if (ready) return servedPath(collection, namespace, name);
  return `/${collection}/${part(namespace)}/${part(name)}/open`;
}
