import { api, fetchJson, sendJson, unwrap } from "@/api/client";
import { type Collection, kubeflow, part, workloadPath } from "./queries";

/** Where Kubeflow's routes have a resource of each collection. */
function path(collection: Collection, namespace: string, name?: string): string {
  const base = {
    notebooks: `${kubeflow.jupyter(namespace)}/notebooks`,
    tensorboards: `${kubeflow.boards(namespace)}/tensorboards`,
    volumes: `${kubeflow.volumes(namespace)}/pvcs`,
    viewers: `${kubeflow.volumes(namespace)}/viewers`,
  }[collection];
  return name === undefined ? base : `${base}/${part(name)}`;
}

/** Create a resource. A repeated `key` names the same request: it creates nothing a second time. */
export function create(
  collection: Collection,
  namespace: string,
  body: object,
  key: string,
): Promise<unknown> {
  return fetchJson(path(collection, namespace), {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify(body),
  });
}

/** Change the given fields of a form. */
export function edit(collection: Collection, namespace: string, name: string, body: object) {
  return sendJson("PATCH", workloadPath(collection, namespace, name), body);
}

/** Delete a resource. */
export function remove(collection: Collection, namespace: string, name: string) {
  return sendJson("DELETE", path(collection, namespace, name));
}

export function setStopped(
  collection: "notebooks" | "tensorboards" | "viewers",
  namespace: string,
  name: string,
  stopped: boolean,
) {
  return edit(collection, namespace, name, { stopped });
}

/** Replace a resource by edited YAML. Conflict: it is not as in `base` any more. */
export function replaceYaml(
  collection: Collection,
  namespace: string,
  name: string,
  yaml: string,
  base: string,
): Promise<unknown> {
  return sendJson("PUT", `${workloadPath(collection, namespace, name)}/yaml`, { yaml, base });
}

/** The TensorBoard of the logs of a run, or of a place: the one that shows them, or a new one. */
export function openTensorboard(namespace: string, source: { target: string }) {
  const params = { path: { namespace } };
  return unwrap(
    api.POST("/api/v1/namespaces/{namespace}/open-tensorboard", { params, body: source }),
  );
}

export function install(name: string) {
  return unwrap(api.POST("/api/v1/programs/{name}/install", { params: { path: { name } } }));
}
