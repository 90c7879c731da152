import { Link } from "@tanstack/react-router";
import { ChevronDown, ChevronRight } from "lucide-react";
import { memo, type ReactNode } from "react";
import { ShortenedText } from "@/components/format/shortened-text";
import { quoteCommand, shortCommand } from "../command";
import type { Activity, ActivityGroup } from "../use-activities";
import type { Column } from "./columns";

export const ROW_HEIGHT = 40;

interface Common {
  position: number;
  top: number;
  template: string;
  columns: Column[];
}

const ROW =
  "absolute inset-x-0 grid items-center border-b border-line group outline-none focus-visible:after:pointer-events-none focus-visible:after:absolute focus-visible:after:inset-0 focus-visible:after:z-[2] focus-visible:after:border-2 focus-visible:after:border-accent";
const CELL = "min-w-0 truncate px-3";
const STICKY = "flex h-full items-center sm:sticky";

function rowProps({ position, top, template }: Common) {
  return {
    "aria-rowindex": position + 2,
    "data-row": position,
    style: { gridTemplateColumns: template, height: ROW_HEIGHT, top },
  };
}

function align(column: Column): string {
  return column.align === "right" ? `${CELL} text-right tabular-nums` : CELL;
}

type ActivityRowProps = Common & {
  activity: Activity;
  indented: boolean;
  active: boolean;
  selected: boolean;
  onToggle: (id: string) => void;
  onActivate: (position: number) => void;
  actions: (activity: Activity) => ReactNode;
};

export const ActivityRow = memo(function ActivityRow(props: ActivityRowProps) {
  const { activity, columns, selected } = props;
  const background = selected ? "bg-accent-soft" : "bg-surface group-hover:bg-sunken";
  return (
    <div
      role="row"
      {...rowProps(props)}
      tabIndex={props.active ? 0 : -1}
      className={`${ROW} ${selected ? "bg-accent-soft" : "hover:bg-sunken"}`}
      onFocus={() => props.onActivate(props.position)}
    >
      <div role="cell" className={`${STICKY} left-0 z-[1] pl-3 ${background}`}>
        <input
          type="checkbox"
          aria-label={`Select ${activity.id}`}
          className="size-4 accent-accent"
          checked={selected}
          onChange={() => props.onToggle(activity.id)}
        />
      </div>
      <div
        role="cell"
        className={`${STICKY} left-10 z-[1] min-w-0 gap-2 pr-3 ${props.indented ? "pl-8" : "pl-3"} ${background}`}
      >
        <ActivityLink activity={activity} />
      </div>
      {columns.map((column) => (
        <div key={column.id} role="cell" className={align(column)}>
          {column.cell(activity)}
        </div>
      ))}
      <div role="cell" className={`${STICKY} right-0 justify-end pr-1 ${background}`}>
        {props.actions(activity)}
      </div>
    </div>
  );
});

/** The name, or the command if there is none, and the id. */
function ActivityLink({ activity }: { activity: Activity }) {
  const { id, uid, name, command } = activity;
  const title = name ?? (command.length ? quoteCommand(command) : uid);
  return (
    <Link
      to="/runs/$id"
      params={{ id }}
      preload={false}
      title={title}
      className="flex min-w-0 flex-1 items-center gap-2 rounded hover:underline"
    >
      {name ? (
        <span className="min-w-0 flex-1 truncate font-medium">{name}</span>
      ) : (
        <ShortenedText text={command.length ? shortCommand(command) : uid} />
      )}
      <code className="shrink-0 text-quiet">{id === uid ? uid.slice(0, 8) : id}</code>
    </Link>
  );
}

type GroupRowProps = Common & {
  group: ActivityGroup;
  by: string;
  open: boolean;
  active: boolean;
  onToggle: (key: string | null) => void;
};

export const GroupRow = memo(function GroupRow(props: GroupRowProps) {
  const { group, by, columns, open } = props;
  const Chevron = open ? ChevronDown : ChevronRight;
  const label = group.label ?? group.key;
  return (
    <div
      role="row"
      {...rowProps(props)}
      tabIndex={props.active ? 0 : -1}
      className={`${ROW} bg-sunken`}
    >
      <div role="cell" className={`${STICKY} left-0 z-[1] col-span-2 min-w-0 bg-sunken pr-3 pl-1`}>
        <button
          type="button"
          aria-expanded={open}
          className="flex h-full min-w-0 flex-1 items-center gap-2 rounded px-2 text-left font-medium"
          onClick={() => props.onToggle(group.key)}
        >
          <Chevron size={16} aria-hidden className="shrink-0" />
          <span className="min-w-0 truncate" title={label ?? undefined}>
            {label === null ? (
              <span className="text-quiet">{describeMissing(by)}</span>
            ) : by === "git" ? (
              <code className="font-mono">{label.slice(0, 10)}</code>
            ) : (
              label
            )}
          </span>
          <span className="shrink-0 font-normal text-quiet">{group.total}</span>
        </button>
      </div>
      {columns.map((column) => (
        <div key={column.id} role="cell" className={align(column)}>
          {column.summary?.(group)}
        </div>
      ))}
      <div role="cell" className={`${STICKY} right-0 bg-sunken`} />
    </div>
  );
});

function describeMissing(by: string): string {
  const name = by.startsWith("params.") ? by.slice("params.".length) : by;
  const words: Record<string, string> = { agent: "user", git: "Git commit" };
  return `without ${words[name] ?? name}`;
}

export function LoadingRow(props: Common) {
  return (
    <div role="row" {...rowProps(props)} tabIndex={-1} className={ROW}>
      <div role="cell" className="col-span-full px-3">
        <div className="h-3 w-1/2 rounded bg-line" />
        <span className="sr-only">Loading</span>
      </div>
    </div>
  );
}
