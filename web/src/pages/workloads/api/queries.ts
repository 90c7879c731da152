import { queryOptions, useQueries, useQuery } from "@tanstack/react-query";
import { api, fetchJson, unwrap } from "@/api/client";
import type { NotebookItem, TensorboardItem, VolumeItem, Workload } from "./documents";
import type { FormConfig } from "./form-config";

const MILLISECONDS_WHILE_INSTALLING = 1000;

export type Collection = "notebooks" | "tensorboards" | "volumes" | "viewers";

/** The part of a path for a name that a user chose. */
export const part = encodeURIComponent;

const jupyter = (namespace: string) => `/jupyter/api/namespaces/${part(namespace)}`;
const boards = (namespace: string) => `/tensorboards/api/namespaces/${part(namespace)}`;
const volumes = (namespace: string) => `/volumes/api/namespaces/${part(namespace)}`;
export const kubeflow = { jupyter, boards, volumes };

/** Where Clew's own API has a resource: its details, its YAML, its logs, and changes to it. */
export function workloadPath(collection: Collection, namespace: string, name: string): string {
  return `/api/v1/namespaces/${part(namespace)}/${collection}/${part(name)}`;
}

export const backendQuery = queryOptions({
  queryKey: ["backend"],
  queryFn: () => unwrap(api.GET("/api/v1/backend")),
});

export const useBackend = () => useQuery(backendQuery);

export const notebooksQuery = (namespace: string) =>
  queryOptions({
    queryKey: ["workloads", "notebooks", namespace],
    queryFn: async () =>
      (await fetchJson<{ notebooks: NotebookItem[] }>(`${jupyter(namespace)}/notebooks`)).notebooks,
  });

export const tensorboardsQuery = (namespace: string) =>
  queryOptions({
    queryKey: ["workloads", "tensorboards", namespace],
    queryFn: async () =>
      (await fetchJson<{ tensorboards: TensorboardItem[] }>(`${boards(namespace)}/tensorboards`))
        .tensorboards,
  });

export const volumesQuery = (namespace: string) =>
  queryOptions({
    queryKey: ["workloads", "volumes", namespace],
    queryFn: async () =>
      (await fetchJson<{ pvcs: VolumeItem[] }>(`${volumes(namespace)}/pvcs`)).pvcs,
  });

/** One list of what several namespaces contain. An error of one is the error of all. */
export function useLists<Item>(
  namespaces: string[],
  query: (namespace: string) => {
    queryKey: readonly string[];
    queryFn?: unknown;
  },
): { data: Item[] | undefined; error: unknown; refetch: () => void } {
  return useQueries({
    queries: namespaces.map((namespace) => query(namespace) as ReturnType<typeof anyList<Item>>),
    combine: (results) => ({
      data: results.every((one) => one.data) ? results.flatMap((one) => one.data ?? []) : undefined,
      error: results.find((one) => one.error)?.error ?? null,
      refetch: () => {
        for (const one of results) one.refetch();
      },
    }),
  });
}

function anyList<Item>() {
  return queryOptions({ queryKey: [""], queryFn: async (): Promise<Item[]> => [] });
}

/** A resource as the administrator's tools see it: fields of Kubernetes. */
export type Resource = Record<string, unknown>;

export const notebookQuery = (namespace: string, name: string) =>
  queryOptions({
    queryKey: ["workloads", "notebook", namespace, name],
    queryFn: async () =>
      (await fetchJson<{ notebook: Resource }>(`${jupyter(namespace)}/notebooks/${part(name)}`))
        .notebook,
  });

export const workloadQuery = (collection: Collection, namespace: string, name: string) =>
  queryOptions({
    queryKey: ["workloads", "details", collection, namespace, name],
    queryFn: () => fetchJson<Workload>(workloadPath(collection, namespace, name)),
  });

export const formConfigQuery = queryOptions({
  queryKey: ["workloads", "form-config"],
  queryFn: async () => (await fetchJson<{ config: FormConfig }>("/jupyter/api/config")).config,
});

/** A configuration that a notebook or TensorBoard can have. */
export interface Configuration {
  label: string;
  desc: string;
}

export const configurationsQuery = (namespace: string) =>
  queryOptions({
    queryKey: ["workloads", "configurations", namespace],
    queryFn: async () =>
      (await fetchJson<{ poddefaults: Configuration[] }>(`${jupyter(namespace)}/poddefaults`))
        .poddefaults,
  });

export const storageClassesQuery = queryOptions({
  queryKey: ["workloads", "storage-classes"],
  queryFn: async () => (await unwrap(api.GET("/api/v1/storage-classes"))).storage_classes,
});

export const installationQuery = (name: string) =>
  queryOptions({
    queryKey: ["workloads", "program", name],
    queryFn: () => unwrap(api.GET("/api/v1/programs/{name}", { params: { path: { name } } })),
    refetchInterval: (query) =>
      query.state.data?.state === "installing" ? MILLISECONDS_WHILE_INSTALLING : false,
  });

export const snapshotsQuery = (namespace: string) =>
  queryOptions({
    queryKey: ["workloads", "snapshots", namespace],
    queryFn: async () =>
      (
        await unwrap(
          api.GET("/api/v1/namespaces/{namespace}/snapshots", { params: { path: { namespace } } }),
        )
      ).snapshots,
  });
