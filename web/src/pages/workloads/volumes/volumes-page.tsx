import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { curlCommand } from "@/api/curl";
import type { Column } from "@/components/data-table";
import type { BackendInfo, VolumeItem } from "../api/documents";
import { kubeflow, useLists, volumesQuery } from "../api/queries";
import { shownNamespaces } from "../common/namespace";
import { CREATED_COLUMN, NAMESPACE_COLUMN, nameColumn, stateColumn } from "../list/columns";
import { ListPage, WithBackend } from "../list/list-page";
import { Names } from "../list/names-cell";
import { type SortKeys, timeKey } from "../list/search";
import { useSearchChange } from "../list/use-search-change";
import { describeModes, describeSize, sizeInBytes } from "./describe-volume";
import { VolumeRowActions } from "./volume-actions";
import { useVolumeUsers } from "./volume-users";

const route = getRouteApi("/volumes");

const KEYS: SortKeys<VolumeItem> = {
  name: ({ name }) => name,
  namespace: ({ namespace }) => namespace,
  state: ({ status }) => `${status.phase} ${status.message}`,
  size: ({ capacity }) => sizeInBytes(capacity),
  class: (row) => row.class ?? "",
  age: ({ age }) => -timeKey(age),
};

const text = (row: VolumeItem) =>
  [
    row.name,
    row.namespace,
    row.class ?? "",
    row.status.phase,
    row.status.message,
    ...row.notebooks,
  ].join(" ");

function makeColumns(backend: BackendInfo): Column<VolumeItem>[] {
  const cluster = backend.kind !== "local";
  const columns: (Column<VolumeItem> | false)[] = [
    nameColumn("volumes"),
    stateColumn("volumes"),
    NAMESPACE_COLUMN,
    cluster && {
      id: "size",
      header: "Size",
      sortable: true,
      width: "6.5rem",
      align: "right",
      cell: ({ capacity }) => describeSize(capacity),
    },
    cluster && {
      id: "class",
      header: "Storage class",
      sortable: true,
      width: "minmax(7rem, 1fr)",
      cell: (row) => row.class ?? "–",
    },
    cluster && {
      id: "modes",
      header: "Access",
      width: "minmax(10rem, 1.3fr)",
      cell: ({ modes }) => <Names names={describeModes(modes)} />,
    },
    {
      id: "users",
      header: "Used by",
      width: "minmax(8rem, 1.2fr)",
      cell: (volume) => <Users volume={volume} />,
    },
    CREATED_COLUMN,
    {
      id: "actions",
      header: "Actions",
      width: "11rem",
      align: "right",
      pinned: true,
      cell: (volume) => <VolumeRowActions volume={volume} backend={backend} />,
    },
  ];
  return columns.filter((column) => column !== false);
}

function Users({ volume }: { volume: VolumeItem }) {
  return <Names names={useVolumeUsers(volume).map(({ name }) => name)} />;
}

export function VolumesPage() {
  return (
    <WithBackend title="Volumes" feature="volumes">
      {(backend) => <VolumeList backend={backend} />}
    </WithBackend>
  );
}

function VolumeList({ backend }: { backend: BackendInfo }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const onSearch = useSearchChange("/volumes");
  const lists = useLists<VolumeItem>(shownNamespaces(backend, search.namespace), volumesQuery);
  const columns = useMemo(() => makeColumns(backend), [backend]);
  return (
    <ListPage
      backend={backend}
      search={search}
      onSearch={onSearch}
      {...lists}
      options={{
        title: "Volumes",
        thing: "volume",
        things: "volumes",
        createLabel: "New volume",
        createTo: "/volumes/new",
        columns,
        keys: KEYS,
        text,
        empty: "A volume keeps files for notebooks and runs, whether they run or not.",
        command: (namespace) =>
          curlCommand(`${kubeflow.volumes(namespace)}/pvcs`, {
            name: "data",
            type: "empty",
            size: "10Gi",
            mode: "ReadWriteOnce",
            class: "{empty}",
          }),
        onOpen: ({ namespace, name }) =>
          navigate({ to: "/volumes/$namespace/$name", params: { namespace, name } }),
      }}
    />
  );
}
