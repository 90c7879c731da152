import { useQuery } from "@tanstack/react-query";
import type { NavigateOptions } from "@tanstack/react-router";
import { ChartLine, HardDrive, type LucideIcon, NotebookPen, Workflow } from "lucide-react";
import { pipelinesQuery } from "@/pages/pipelines/api";
import {
  backendQuery,
  notebooksQuery,
  tensorboardsQuery,
  useLists,
  volumesQuery,
} from "@/pages/workloads/api/queries";

export interface PaletteEntry {
  key: string;
  kind: string;
  name: string;
  where: string;
  icon: LucideIcon;
  go: NavigateOptions;
}

interface Named {
  name: string;
  namespace?: string;
}

const MAX_OF_A_KIND = 6;

/** What the pages list themselves: pipelines, notebooks, TensorBoards and volumes with these words. */
export function usePaletteEntries(text: string, isEnabled: boolean): PaletteEntry[] {
  const pipelines = useQuery({ ...pipelinesQuery(), enabled: isEnabled });
  const backend = useQuery({ ...backendQuery, enabled: isEnabled });
  const namespaces = isEnabled ? (backend.data?.namespaces ?? []) : [];
  const notebooks = useLists<Named>(namespaces, notebooksQuery);
  const boards = useLists<Named>(namespaces, tensorboardsQuery);
  const volumes = useLists<Named>(namespaces, volumesQuery);
  if (!isEnabled) return [];
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const choose = <Item extends { name: string }>(items: Item[] | undefined) =>
    (items ?? [])
      .filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)))
      .slice(0, MAX_OF_A_KIND);
  const workloads = (
    kind: string,
    collection: "notebooks" | "tensorboards" | "volumes",
    icon: LucideIcon,
    items: Named[] | undefined,
  ): PaletteEntry[] =>
    choose(items).map(({ name, namespace = "" }) => ({
      key: `${collection}/${namespace}/${name}`,
      kind,
      name,
      where: namespaces.length > 1 ? namespace : "",
      icon,
      go: { to: `/${collection}/$namespace/$name`, params: { namespace, name } },
    }));
  return [
    ...choose(pipelines.data?.pipelines).map(
      ({ id, name }): PaletteEntry => ({
        key: `pipeline/${id}`,
        kind: "Pipeline",
        name,
        where: "",
        icon: Workflow,
        go: { to: "/pipelines/$id", params: { id } },
      }),
    ),
    ...workloads("Notebook", "notebooks", NotebookPen, notebooks.data),
    ...workloads("TensorBoard", "tensorboards", ChartLine, boards.data),
    ...workloads("Volume", "volumes", HardDrive, volumes.data),
  ];
}
