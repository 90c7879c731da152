import { useMemo } from "react";
import type { Schemas } from "@/api/client";
import { type Column, DataTable } from "@/components/data-table";
import { Duration } from "@/components/format/time";

type Process = Schemas["Process"];
type Row = Process & { depth: number };

/** The programs that ran, each below the one that started it. */
export function Processes({ processes }: { processes: readonly Process[] }) {
  const rows = useMemo(() => orderByParent(processes), [processes]);
  return <DataTable label="Processes" columns={COLUMNS} rows={rows} rowKey={(row) => row.id} />;
}

const COLUMNS: Column<Row>[] = [
  {
    id: "command",
    header: "Command",
    width: "minmax(14rem, 1fr)",
    cell: (row) => (
      <code
        className="font-mono text-[0.93rem]"
        style={{ paddingLeft: `${Math.min(row.depth, 12)}rem` }}
        title={row.command.join(" ")}
      >
        {row.command.join(" ") || row.exe}
      </code>
    ),
  },
  { id: "id", header: "Process", width: "6rem", cell: (row) => row.id },
  {
    id: "took",
    header: "Took",
    width: "6rem",
    align: "right",
    cell: (row) => <Duration seconds={secondsOf(row)} />,
  },
  {
    id: "end",
    header: "End",
    width: "8rem",
    cell: (row) =>
      row.signal !== null
        ? `signal ${row.signal}`
        : row.status === null
          ? "–"
          : `status ${row.status}`,
  },
];

function secondsOf({ started, ended }: Process): number | null {
  return ended ? (Date.parse(ended) - Date.parse(started)) / 1000 : null;
}

function orderByParent(processes: readonly Process[]): Row[] {
  const known = new Set(processes.map(({ id }) => id));
  const children = new Map<string | null, Process[]>();
  for (const process of processes) {
    const parent = process.parent && known.has(process.parent) ? process.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), process]);
  }
  const rows: Row[] = [];
  const waiting = [...(children.get(null) ?? [])]
    .reverse()
    .map((process): Row => ({ ...process, depth: 0 }));
  while (waiting.length) {
    const row = waiting.pop() as Row;
    rows.push(row);
    for (const child of [...(children.get(row.id) ?? [])].reverse())
      waiting.push({ ...child, depth: row.depth + 1 });
  }
  return rows;
}
