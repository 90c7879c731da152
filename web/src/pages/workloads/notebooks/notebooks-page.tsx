import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { curlCommand } from "@/api/curl";
import type { BackendInfo, NotebookItem } from "../api/documents";
import { kubeflow, notebooksQuery, useLists } from "../api/queries";
import { shownNamespaces } from "../common/namespace";
import { ProgramBanner } from "../common/program-banner";
import { ListPage, WithBackend } from "../list/list-page";
import { type SortKeys, timeKey } from "../list/search";
import { useSearchChange } from "../list/use-search-change";
import { makeColumns } from "./columns";

const route = getRouteApi("/notebooks");

const KEYS: SortKeys<NotebookItem> = {
  name: ({ name }) => name,
  namespace: ({ namespace }) => namespace,
  state: ({ status }) => `${status.phase} ${status.message}`,
  image: ({ shortImage }) => shortImage,
  age: ({ age }) => -timeKey(age),
  activity: ({ last_activity }) => -timeKey(last_activity),
};

const text = (row: NotebookItem) =>
  [
    row.name,
    row.namespace,
    row.image,
    row.status.phase,
    row.status.message,
    ...row.volumes,
    ...row.configurations,
  ].join(" ");

export function NotebooksPage() {
  return (
    <WithBackend title="Notebooks" feature="notebooks">
      {(backend) => <NotebookList backend={backend} />}
    </WithBackend>
  );
}

function NotebookList({ backend }: { backend: BackendInfo }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const onSearch = useSearchChange("/notebooks");
  const lists = useLists<NotebookItem>(shownNamespaces(backend, search.namespace), notebooksQuery);
  const columns = useMemo(() => makeColumns(backend), [backend]);
  return (
    <ListPage
      backend={backend}
      search={search}
      onSearch={onSearch}
      {...lists}
      options={{
        title: "Notebooks",
        thing: "notebook",
        things: "notebooks",
        createLabel: "New notebook",
        createTo: "/notebooks/new",
        columns,
        keys: KEYS,
        text,
        empty:
          "A notebook runs code beside your data, and keeps what you save in its volumes when it is stopped.",
        command: (namespace) =>
          curlCommand(`${kubeflow.jupyter(namespace)}/notebooks`, { name: "notebook-1" }),
        banner: (info) => <ProgramBanner name="jupyterlab" backend={info} />,
        onOpen: ({ namespace, name }) =>
          navigate({ to: "/notebooks/$namespace/$name", params: { namespace, name } }),
      }}
    />
  );
}
