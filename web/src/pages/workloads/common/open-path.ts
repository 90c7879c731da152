import { part } from "../api/queries";

const PREFIXES = { notebooks: "notebook", tensorboards: "tensorboard", volumes: "pvcviewers" };
export type Openable = keyof typeof PREFIXES;

/** Where a resource is served: the server passes the session on to the origin of the apps. */
export function servedPath(collection: Openable, namespace: string, name: string): string {
  return `/${PREFIXES[collection]}/${part(namespace)}/${part(name)}/`;
}

/** Where a link leads: to the resource, or to a page that waits until it is ready. */
export function openPath(
  collection: Openable,
  namespace: string,
  name: string,
  phase: string,
): string {
  if (phase === "ready") return servedPath(collection, namespace, name);
  return `/${collection}/${part(namespace)}/${part(name)}/open`;
}
