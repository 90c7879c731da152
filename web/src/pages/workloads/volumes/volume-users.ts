import { useQuery } from "@tanstack/react-query";
import type { NotebookItem, TensorboardItem, VolumeItem } from "../api/documents";
import { notebooksQuery, tensorboardsQuery } from "../api/queries";
import { readLogPlace } from "../tensorboards/log-place";

/** A notebook or TensorBoard that uses a volume. */
export interface VolumeUser {
  kind: "notebooks" | "tensorboards";
  name: string;
  /** Whether it keeps the volume from being deleted. */
  running: boolean;
}

export function findUsers(
  volume: VolumeItem,
  notebooks: readonly NotebookItem[],
  boards: readonly TensorboardItem[],
): VolumeUser[] {
  const running = ({ status }: NotebookItem | TensorboardItem) => status.phase !== "stopped";
  const mounted = new Set(volume.notebooks);
  return [
    ...notebooks
      .filter(({ name }) => mounted.has(name))
      .map((one) => ({ kind: "notebooks" as const, name: one.name, running: running(one) })),
    ...boards
      .filter(({ logspath }) => readLogPlace(logspath)?.volume === volume.name)
      .map((one) => ({ kind: "tensorboards" as const, name: one.name, running: running(one) })),
  ];
}

export function useVolumeUsers(volume: VolumeItem): VolumeUser[] {
  const { data: notebooks = [] } = useQuery(notebooksQuery(volume.namespace));
  const { data: boards = [] } = useQuery(tensorboardsQuery(volume.namespace));
  return findUsers(volume, notebooks, boards);
}
