import type { Column } from "@/components/data-table";
import { Time } from "@/components/format/time";
import type { BackendInfo, NotebookItem } from "../api/documents";
import { imageLabel } from "../api/form-config";
import { CREATED_COLUMN, NAMESPACE_COLUMN, nameColumn, stateColumn } from "../list/columns";
import { Names } from "../list/names-cell";
import { describeResources } from "./format-resources";
import { NotebookRowActions } from "./notebook-actions";

export function makeColumns(backend: BackendInfo): Column<NotebookItem>[] {
  const cluster = backend.kind !== "local";
  const columns: (Column<NotebookItem> | false)[] = [
    nameColumn("notebooks"),
    // On a cluster more can go wrong, and the list is wider than most windows anyway.
    { ...stateColumn("notebooks"), ...(cluster && { width: "minmax(15rem, 1.5fr)" }) },
    NAMESPACE_COLUMN,
    {
      id: "image",
      header: "Image",
      sortable: true,
      width: "minmax(9rem, 1.2fr)",
      cell: ({ image, shortImage }) => (
        <span title={image}>{image === "this-machine" ? imageLabel(image, {}) : shortImage}</span>
      ),
    },
    cluster && {
      id: "resources",
      header: "Resources",
      width: "minmax(9rem, 1fr)",
      cell: (notebook) => describeResources(notebook),
    },
    {
      id: "volumes",
      header: "Volumes",
      width: "minmax(7rem, 1fr)",
      cell: ({ volumes }) => <Names names={volumes} />,
    },
    CREATED_COLUMN,
    {
      id: "activity",
      header: "Last used",
      sortable: true,
      width: "9.5rem",
      cell: ({ last_activity }) => <Time at={last_activity || null} />,
    },
    cluster && {
      id: "configurations",
      header: "Configurations",
      width: "minmax(8rem, 1fr)",
      cell: ({ configurations }) => <Names names={configurations} />,
    },
    {
      id: "actions",
      header: "Actions",
      width: "14.5rem",
      align: "right",
      pinned: true,
      cell: (notebook) => <NotebookRowActions notebook={notebook} />,
    },
  ];
  return columns.filter((column) => column !== false);
}
