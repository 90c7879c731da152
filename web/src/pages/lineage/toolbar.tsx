import { Filter, Network, Table2 } from "lucide-react";
import { type ReactNode, useId } from "react";
import { Button } from "@/components/button";
import { classes } from "@/components/classes";
import { Checkbox, Field, Input, Select } from "@/components/fields/field";
import { describeKind } from "@/components/kinds";
import type { LineageGraph } from "./graph-model";
import {
  ALL_STEPS,
  DEFAULT_DEPTH,
  type Direction,
  isNarrowed,
  toggleKind,
  type View,
} from "./view";

type Change = (change: (view: View) => View) => void;

const DIRECTIONS: [Direction, string, string][] = [
  ["up", "Made from", "What produced this"],
  ["both", "Both", "What produced this, and what was derived from it"],
  ["down", "Derived", "What was derived from this"],
];
const STEPS = [1, 2, 3, 5, 10, ALL_STEPS];

/** The direction, how far to go, and whether to draw or to list. */
export function LineageToolbar({ view, change }: { view: View; change: Change }) {
  const id = useId();
  return (
    <>
      <Choice label="Direction">
        {DIRECTIONS.map(([direction, label, title]) => (
          <Option
            key={direction}
            title={title}
            isOn={(view.direction ?? "both") === direction}
            onClick={() =>
              change((now) => ({
                ...now,
                direction: direction === "both" ? undefined : direction,
              }))
            }
          >
            {label}
          </Option>
        ))}
      </Choice>
      <div className="flex items-center gap-2">
        <label htmlFor={id} className="text-quiet">
          Steps
        </label>
        <Select
          id={id}
          className="w-auto"
          value={view.depth ?? DEFAULT_DEPTH}
          onChange={(event) => {
            const depth = Number(event.target.value);
            change((now) => ({ ...now, depth: depth === DEFAULT_DEPTH ? undefined : depth }));
          }}
        >
          {STEPS.includes(view.depth ?? DEFAULT_DEPTH) ? null : <option>{view.depth}</option>}
          {STEPS.map((steps) => (
            <option key={steps} value={steps}>
              {steps === ALL_STEPS ? "all" : steps}
            </option>
          ))}
        </Select>
      </div>
      <Choice label="View">
        <Option
          isOn={!view.view}
          onClick={() => change((now) => ({ ...now, view: undefined }))}
          title="Show a graph"
        >
          <Network size={15} aria-hidden /> Graph
        </Option>
        <Option
          isOn={view.view === "table"}
          onClick={() => change((now) => ({ ...now, view: "table" }))}
          title="Show a table"
        >
          <Table2 size={15} aria-hidden /> Table
        </Option>
      </Choice>
    </>
  );
}

/** Which kinds and times are shown. Chips of kinds say how many there are. */
export function Filters({
  view,
  graph,
  change,
}: {
  view: View;
  graph: LineageGraph;
  change: Change;
}) {
  const hidden = new Set(view.hide);
  const kinds = [...graph.kinds];
  for (const kind of hidden)
    if (!kinds.some((one) => one.kind === kind)) kinds.push({ kind, count: 0 });
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
      <fieldset className="flex flex-wrap items-center gap-1.5">
        <legend className="sr-only">Kinds that are shown</legend>
        <Filter size={15} aria-hidden className="text-quiet" />
        {kinds.map(({ kind, count }) => {
          const { icon: Icon, plural } = describeKind(kind);
          const isOn = !hidden.has(kind);
          return (
            <button
              key={kind}
              type="button"
              aria-pressed={isOn}
              onClick={() => change((now) => toggleKind(now, kind))}
              title={isOn ? `Hide: ${plural}` : `Show: ${plural}`}
              className={classes(
                "inline-flex min-h-7 items-center gap-1.5 rounded-full border px-2.5",
                isOn
                  ? "border-line-strong bg-surface"
                  : "border-dashed border-line-strong text-quiet line-through",
              )}
            >
              <Icon size={14} aria-hidden /> {plural}
              <span className="text-quiet tabular-nums">{count.toLocaleString("en")}</span>
            </button>
          );
        })}
      </fieldset>
      <Checkbox
        label={
          graph.hidden_files && !view.all
            ? `Files of installed packages (${graph.hidden_files.toLocaleString("en")})`
            : "Files of installed packages"
        }
        checked={view.all ?? false}
        onChange={(event) => {
          const all = event.target.checked || undefined;
          change((now) => ({ ...now, all }));
        }}
      />
      <details
        className="relative"
        open={Boolean(view.since || view.until || view.as_of) || undefined}
      >
        <summary className="rounded-md px-1 text-quiet hover:text-ink">Time</summary>
        <div className="mt-1 flex flex-wrap items-end gap-2 rounded-lg border border-line bg-raised p-3">
          <TimeField
            label="From"
            value={view.since}
            bound={graph.earliest}
            onChange={(since) => change((now) => ({ ...now, since }))}
          />
          <TimeField
            label="Until"
            value={view.until}
            bound={graph.latest}
            onChange={(until) => change((now) => ({ ...now, until }))}
          />
          <TimeField
            label="As it was at"
            value={view.as_of}
            bound={graph.latest}
            onChange={(as_of) => change((now) => ({ ...now, as_of }))}
          />
        </div>
      </details>
      {isNarrowed(view) && (
        <Button
          look="quiet"
          onClick={() =>
            change((now) => ({
              ...now,
              hide: undefined,
              since: undefined,
              until: undefined,
              as_of: undefined,
            }))
          }
        >
          Clear filters ({graph.filtered.toLocaleString("en")} hidden)
        </Button>
      )}
    </div>
  );
}

function TimeField({
  label,
  value,
  bound,
  onChange,
}: {
  label: string;
  value: string | undefined;
  bound: string | null;
  onChange: (value: string | undefined) => void;
}) {
  const hint = bound ? `${label === "From" ? "first" : "last"}: ${toLocal(bound)}` : undefined;
  return (
    <Field label={label} hint={hint?.replace("T", " ")}>
      <Input
        type="datetime-local"
        step={1}
        value={value ? toLocal(value) : ""}
        onChange={(event) => {
          const at = event.target.value ? new Date(event.target.value) : null;
          if (!at || !Number.isNaN(at.getTime())) onChange(at?.toISOString());
        }}
      />
    </Field>
  );
}

/** A time as the browser's own fields want it: local, without a zone. */
export function toLocal(time: string): string {
  const at = new Date(time);
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

function Choice({ label, children }: { label: string; children: ReactNode }) {
  return (
    <fieldset className="inline-flex rounded-md border border-line-strong bg-surface p-0.5">
      <legend className="sr-only">{label}</legend>
      {children}
    </fieldset>
  );
}

function Option({
  isOn,
  title,
  onClick,
  children,
}: {
  isOn: boolean;
  title: string;
  onClick: () => void;
  children: ReactNode;
}) {
  return (
    <button
      type="button"
      aria-pressed={isOn}
      title={title}
      onClick={onClick}
      className={classes(
        "inline-flex min-h-7 items-center gap-1.5 rounded px-2.5 whitespace-nowrap",
        isOn ? "bg-accent-soft font-medium text-accent" : "hover:bg-sunken",
      )}
    >
      {children}
    </button>
  );
}
