import { Link } from "@tanstack/react-router";
import type { Column } from "@/components/data-table";
import { Time } from "@/components/format/time";
import type { ResourceStatus } from "../api/documents";
import { Phase } from "../common/phase";

/** The columns that the lists of notebooks, TensorBoards and volumes share. */
export interface ListedItem {
  namespace: string;
  name: string;
  status: ResourceStatus;
  age: string;
}

type Collection = "notebooks" | "tensorboards" | "volumes";

export function nameColumn<Item extends ListedItem>(collection: Collection): Column<Item> {
  return {
    id: "name",
    header: "Name",
    sortable: true,
    width: "minmax(9rem, 1.2fr)",
    cell: ({ namespace, name }) => (
      <Link
        to={`/${collection}/$namespace/$name`}
        params={{ namespace, name }}
        className="font-medium hover:underline"
        title={name}
      >
        {name}
      </Link>
    ),
  };
}

export function stateColumn<Item extends ListedItem>(collection: Collection): Column<Item> {
  return {
    id: "state",
    header: "State",
    sortable: true,
    width: "minmax(8rem, 1.5fr)",
    cell: ({ status }) => <Phase status={status} collection={collection} />,
  };
}

export const NAMESPACE_COLUMN: Column<ListedItem> = {
  id: "namespace",
  header: "Namespace",
  sortable: true,
  width: "minmax(6rem, 1fr)",
  cell: ({ namespace }) => namespace,
};

export const CREATED_COLUMN: Column<ListedItem> = {
  id: "age",
  header: "Created",
  sortable: true,
  width: "9.5rem",
  cell: ({ age }) => <Time at={age} />,
};
