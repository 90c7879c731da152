import { getRouteApi, useNavigate } from "@tanstack/react-router";
import type { Column } from "@/components/data-table";
import type { BackendInfo, TensorboardItem } from "../api/documents";
import { tensorboardsQuery, useLists } from "../api/queries";
import { CREATED_COLUMN, NAMESPACE_COLUMN, nameColumn, stateColumn } from "../common/columns";
import { ListPage, WithBackend } from "../common/list-page";
import { shownNamespaces } from "../common/namespace";
import { ProgramBanner } from "../common/program-banner";
import { type SortKeys, timeKey } from "../common/search";
import { useSearchChange } from "../common/use-search-change";
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

const COLUMNS: Column<TensorboardItem>[] = [
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
  {
    id: "actions",
    header: "Actions",
    width: "12.5rem",
    align: "right",
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
        columns: COLUMNS,
        keys: KEYS,
        text,
        empty: "A TensorBoard shows what training runs log, while they run and afterwards.",
        banner: (info) => <ProgramBanner name="tensorboard" backend={info} />,
        onOpen: ({ namespace, name }) =>
          navigate({ to: "/tensorboards/$namespace/$name", params: { namespace, name } }),
      }}
    />
  );
}
