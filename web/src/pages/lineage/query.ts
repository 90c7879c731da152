import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";
import { DEFAULT_DEPTH, type View } from "./view";

/** The part of a view that decides what the server returns. */
export function graphRequest(view: View, grouped: boolean): Schemas["GraphRequest"] {
  return {
    target: view.target ?? "",
    direction: view.direction ?? "both",
    depth: view.depth ?? DEFAULT_DEPTH,
    everything: view.all ?? false,
    before: view.before ?? [],
    after: view.after ?? [],
    opened: (grouped && view.open) || [],
    path: view.from && view.to ? [view.from, view.to] : undefined,
    grouped,
    hide: view.hide ?? [],
    since: view.since,
    until: view.until,
    as_of: view.as_of,
  };
}

/** The lineage that a view shows. While it grows, what is there stays. */
export function useLineage(view: View, grouped: boolean) {
  const body = graphRequest(view, grouped);
  return useQuery({
    queryKey: ["lineage", "graph", body],
    queryFn: ({ signal }) => unwrap(api.POST("/api/v1/lineage/graph", { body, signal })),
    enabled: Boolean(view.target),
    placeholderData: (previous, before) =>
      (before?.queryKey[2] as typeof body | undefined)?.target === body.target
        ? keepPreviousData(previous)
        : undefined,
  });
}

/** The lineage that a view shows, as PROV-JSON or PROV-N. */
export async function fetchProv(view: View, format: "json" | "n"): Promise<Blob> {
  const { data } = await api.POST("/api/v1/lineage/prov", {
    params: { query: { format } },
    body: graphRequest(view, false),
    parseAs: "blob",
  });
  return data as Blob;
}
