import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import type { Column } from "@/components/data-table";
import { Time } from "@/components/time";
import type { BackendInfo, TensorboardItem } from "../api/documents";
import { tensorboardsQuery, useLists } from "../api/queries";
import { ListPage, WithBackend } from "../common/list-page";
import { shownNamespaces } from "../common/namespace";
import { Phase } from "../common/phase";
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
  {
    id: "name",
    header: "Name",
    sortable: true,
    width: "minmax(9rem, 1.2fr)",
    cell: ({ namespace, name }) => (
      <Link
        to="/tensorboards/$namespace/$name"
        params={{ namespace, name }}
        className="font-medium hover:underline"
        title={name}
      >
        {name}
      </Link>
    ),
  },
  {
    id: "state",
    header: "State",
    sortable: true,
    width: "minmax(8rem, 2fr)",
    cell: ({ status }) => <Phase status={status} collection="tensorboards" />,
  },
  {
    id: "namespace",
    header: "Namespace",
    sortable: true,
    width: "minmax(6rem, 1fr)",
    cell: ({ namespace }) => namespace,
  },
  {
    id: "logs",
    header: "Logs in",
    sortable: true,
    width: "minmax(10rem, 2fr)",
    cell: ({ logspath }) => <span title={logspath}>{describeLogs(logspath)}</span>,
  },
  {
    id: "age",
    header: "Created",
    sortable: true,
    width: "9.5rem",
    cell: ({ age }) => <Time at={age} />,
  },
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
