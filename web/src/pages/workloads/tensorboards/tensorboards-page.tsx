import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { curlCommand } from "@/api/curl";
import type { Column } from "@/components/data-table";
import type { BackendInfo, TensorboardItem } from "../api/documents";
import { kubeflow, tensorboardsQuery, useLists } from "../api/queries";
import { shownNamespaces } from "../common/namespace";
import { ProgramBanner } from "../common/program-banner";
import { CREATED_COLUMN, NAMESPACE_COLUMN, nameColumn, stateColumn } from "../list/columns";
import { ListPage, WithBackend } from "../list/list-page";
import { Names } from "../list/names-cell";
import { type SortKeys, timeKey } from "../list/search";
import { useSearchChange } from "../list/use-search-change";
import { describeLogs } from "./log-place";
import { TensorboardRowActions } from "./tensorboard-actions";

const route = getRouteApi("/tensorboards");

const KEYS: SortKeys<TensorboardItem> = {
  name: ({ name }) => name,
  namespace: ({ namespace }) => namespace,
  state: ({ status }) => `${status.phase} ${status.message}`,
  logs: ({ logspath }) => logspath,
  age: ({ age }) => -timeKey(age),
};

const text = ({ name, namespace, logspath, status }: TensorboardItem) =>
  [name, namespace, logspath, status.phase, status.message].join(" ");

const CONFIGURATIONS: Column<TensorboardItem> = {
  id: "configurations",
  header: "Configurations",
  width: "minmax(8rem, 1fr)",
  cell: ({ configurations }) => <Names names={configurations} />,
};

/** On one machine there are no configurations. */
const makeColumns = (cluster: boolean): Column<TensorboardItem>[] => [
  nameColumn("tensorboards"),
  stateColumn("tensorboards"),
  NAMESPACE_COLUMN,
  {
    id: "logs",
    header: "Logs in",
    sortable: true,
    width: "minmax(10rem, 2fr)",
    cell: ({ logspath }) => <span title={logspath}>{describeLogs(logspath)}</span>,
  },
  CREATED_COLUMN,
  ...(cluster ? [CONFIGURATIONS] : []),
  {
    id: "actions",
    header: "Actions",
    width: "12.5rem",
    align: "right",
    pinned: true,
    cell: (board) => <TensorboardRowActions board={board} />,
  },
];

export function TensorboardsPage() {
  return (
    <WithBackend title="TensorBoards" feature="tensorboards">
      {(backend) => <TensorboardList backend={backend} />}
    </WithBackend>
  );
}

function TensorboardList({ backend }: { backend: BackendInfo }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const onSearch = useSearchChange("/tensorboards");
  const lists = useLists<TensorboardItem>(
    shownNamespaces(backend, search.namespace),
    tensorboardsQuery,
  );
  return (
    <ListPage
      backend={backend}
      search={search}
      onSearch={onSearch}
      {...lists}
      options={{
        title: "TensorBoards",
        thing: "TensorBoard",
        things: "TensorBoards",
        createLabel: "New TensorBoard",
        createTo: "/tensorboards/new",
        columns: makeColumns(backend.kind === "cluster"),
        keys: KEYS,
        text,
        empty: "A TensorBoard shows what training runs log, while they run and afterwards.",
        command: (namespace) =>
          curlCommand(`${kubeflow.boards(namespace)}/tensorboards`, {
            name: "tensorboard-1",
            logspath: backend.kind === "local" ? "pvc://project/logs" : "s3://bucket/logs",
          }),
        banner: (info) => <ProgramBanner name="tensorboard" backend={info} />,
        onOpen: ({ namespace, name }) =>
          navigate({ to: "/tensorboards/$namespace/$name", params: { namespace, name } }),
      }}
    />
  );
}
