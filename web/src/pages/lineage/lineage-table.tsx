import { TriangleAlert } from "lucide-react";
import { useMemo } from "react";
import { type Column, DataTable } from "@/components/data-table";
import { EmptyState } from "@/components/feedback";
import { FilterInput } from "@/components/fields/filter-input";
import { formatBytes } from "@/components/format/bytes";
import { Time } from "@/components/format/time";
import { describeKind } from "@/components/kinds";
import { type Box, firstMark, isBroken, type LineageGraph } from "./graph-model";
import { select, type View } from "./view";

const COLUMNS: Column<Box>[] = [
  {
    id: "title",
    header: "Name",
    width: "minmax(12rem, 2fr)",
    sortable: true,
    cell: (box) => <NameCell box={box} />,
  },
  {
    id: "kind",
    header: "Kind",
    width: "9rem",
    sortable: true,
    cell: (box) => describeKind(box.kind).label,
  },
  {
    id: "where",
    header: "Where",
    width: "minmax(10rem, 2fr)",
    sortable: true,
    cell: (box) => <span title={where(box)}>{where(box)}</span>,
  },
  {
    id: "execution",
    header: "Execution",
    width: "7rem",
    sortable: true,
    cell: (box) => execution(box),
  },
  { id: "at", header: "Time", width: "9rem", sortable: true, cell: (box) => <Time at={box.at} /> },
  {
    id: "size",
    header: "Size",
    width: "6.5rem",
    sortable: true,
    align: "right",
    cell: (box) => (box.node?.size == null ? "" : formatBytes(box.node.size)),
  },
  {
    id: "mark",
    header: "Remarks",
    width: "minmax(9rem, 1fr)",
    sortable: true,
    cell: (box) => firstMark(box) ?? "",
  },
];

function NameCell({ box }: { box: Box }) {
  const { icon: Icon } = describeKind(box.kind);
  return (
    <span className="flex min-w-0 items-center gap-2" title={box.title}>
      {isBroken(box) ? (
        <TriangleAlert size={15} aria-hidden className="shrink-0 text-warning" />
      ) : (
        <Icon size={15} aria-hidden className="shrink-0 text-quiet" />
      )}
      <span className="truncate">{box.title}</span>
    </span>
  );
}

function where(box: Box): string {
  if (box.node?.command) return box.node.cwd ?? "";
  const path = box.node?.path ?? "";
  return path.slice(0, Math.max(0, path.lastIndexOf("/"))) || (path.startsWith("/") ? "/" : "");
}

function execution(box: Box): string {
  return box.node?.execution ?? "";
}

const VALUES: Record<string, (box: Box) => string | number> = {
  title: (box) => box.title.toLowerCase(),
  kind: (box) => describeKind(box.kind).label,
  where,
  execution: (box) => Number(execution(box).slice(1)) || 0,
  at: (box) => (box.at ? Date.parse(box.at) : 0),
  size: (box) => box.node?.size ?? -1,
  mark: (box) => firstMark(box) ?? "",
};

/** The rows that contain all words, in the chosen order; without one, in the order of the walk. */
export function arrangeRows(
  boxes: Box[],
  view: Pick<View, "filter" | "sort" | "descending">,
): Box[] {
  const words = (view.filter ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const rows = boxes.filter((box) => {
    const all = [box.id, box.title, describeKind(box.kind).label, firstMark(box), box.node?.digest]
      .join(" ")
      .toLowerCase();
    return words.every((word) => all.includes(word));
  });
  const value = view.sort && Object.hasOwn(VALUES, view.sort) ? VALUES[view.sort] : undefined;
  if (!value) return rows;
  const order = view.descending ? -1 : 1;
  return rows
    .map((box): [string | number, Box] => [value(box), box])
    .sort(([a], [b]) => (a < b ? -order : a > b ? order : 0))
    .map(([, box]) => box);
}

/** All nodes of the lineage, one per row. */
export function LineageTable({
  graph,
  view,
  change,
}: {
  graph: LineageGraph;
  view: View;
  change: (change: (view: View) => View) => void;
}) {
  const { filter, sort, descending } = view;
  const rows = useMemo(
    () => arrangeRows(graph.boxes, { filter, sort, descending }),
    [graph.boxes, filter, sort, descending],
  );
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <div className="flex flex-wrap items-center gap-3">
        <FilterInput
          label="Filter the table"
          placeholder="Filter by name, kind, remark or digest"
          className="max-w-sm"
          value={filter}
          onChange={(text) => change((now) => ({ ...now, filter: text }))}
        />
        <span role="status" className="text-quiet">
          {rows.length.toLocaleString("en")} of {graph.boxes.length.toLocaleString("en")}
        </span>
      </div>
      {rows.length ? (
        <DataTable
          label="Lineage"
          columns={COLUMNS}
          rows={rows}
          rowKey={(box) => box.id}
          onOpen={(box) => change((now) => select(now, box.id))}
          sort={sort ? { column: sort, descending: descending ?? false } : null}
          onSort={(next) =>
            change((now) => ({
              ...now,
              sort: next.column,
              descending: next.descending || undefined,
            }))
          }
        />
      ) : (
        <EmptyState title="No row contains these words" />
      )}
    </div>
  );
}
