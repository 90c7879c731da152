import { type Column, DataTable } from "@/components/data-table";
import { Duration, Time } from "@/components/format/time";
import { StateBadge } from "@/components/state-badge";
import type { Task } from "./task-graph";

/** The same tasks as in the graph, one in each row. */
export function TaskTable({
  tasks,
  onSelect,
}: {
  tasks: readonly Task[];
  onSelect: (task: Task) => void;
}) {
  return (
    <DataTable
      label="Tasks"
      columns={COLUMNS}
      rows={[...tasks]}
      rowKey={(task) => task.name}
      onOpen={onSelect}
    />
  );
}

const COLUMNS: Column<Task>[] = [
  {
    id: "name",
    header: "Task",
    width: "minmax(10rem, 1fr)",
    cell: (task) => <span title={task.name}>{task.name}</span>,
  },
  {
    id: "state",
    header: "State",
    width: "9rem",
    cell: (task) => <StateBadge state={task.state} />,
  },
  { id: "started", header: "Started", width: "9rem", cell: (task) => <Time at={task.started} /> },
  {
    id: "took",
    header: "Took",
    width: "6rem",
    align: "right",
    cell: (task) => <Duration seconds={task.seconds} />,
  },
  {
    id: "why",
    header: "Why",
    width: "minmax(10rem, 1fr)",
    cell: (task) => <span title={task.error ?? task.why ?? ""}>{task.error ?? task.why}</span>,
  },
];
