import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Duration, formatSeconds, Time } from "@/components/format/time";
import { StateBadge } from "@/components/state-badge";
import { quoteCommand } from "../command";
import { toggle } from "../search";
import type { Activity, ActivityGroup } from "../use-activities";
import { formatNumber, formatValue } from "../values";

export interface Column {
  id: string;
  header: string;
  /** What it is, for the list to choose from. */
  kind: "property" | "parameter" | "metric";
  /** In pixels. */
  width: number;
  align?: "right";
  /** What the server sorts by; missing: it cannot. */
  sort?: string;
  cell: (activity: Activity) => ReactNode;
  /** Of a group: an average, for instance. */
  summary?: (group: ActivityGroup) => ReactNode;
}

const NONE = <span className="text-quiet">–</span>;

function text(value: string | null | undefined): ReactNode {
  return value ? <span title={value}>{value}</span> : NONE;
}

export const PROPERTIES: Column[] = [
  {
    id: "state",
    header: "State",
    kind: "property",
    width: 124,
    sort: "state",
    cell: ({ state, error }) => (
      <span title={error ?? undefined}>
        <StateBadge state={state} />
      </span>
    ),
    summary: ({ states }) => <StateCounts states={states} />,
  },
  {
    id: "started",
    header: "Started",
    kind: "property",
    width: 140,
    sort: "started",
    cell: ({ started }) => <Time at={started} />,
    summary: ({ newest }) => <Time at={newest} />,
  },
  {
    id: "seconds",
    header: "Duration",
    kind: "property",
    width: 92,
    align: "right",
    sort: "seconds",
    cell: ({ seconds }) => <Duration seconds={seconds} />,
    summary: ({ seconds }) =>
      seconds === null ? null : <span title="on average">⌀ {formatSeconds(seconds)}</span>,
  },
  {
    id: "git",
    header: "Git",
    kind: "property",
    width: 170,
    cell: ({ git }) =>
      git?.commit ? (
        <span title={`${git.commit}${git.branch ? ` on ${git.branch}` : ""}`}>
          <code className="font-mono">{git.commit.slice(0, 8)}</code>
          {git.dirty && (
            <span className="ml-1 text-warning" title="with changes that were not committed">
              changed
            </span>
          )}
        </span>
      ) : (
        NONE
      ),
  },
  {
    id: "tags",
    header: "Tags",
    kind: "property",
    width: 160,
    cell: ({ tags }) =>
      tags.length ? (
        <span className="inline-flex gap-1">
          {tags.map((tag) => (
            <Link
              key={tag}
              to="/runs"
              search={(before) => ({ ...before, tag: toggle(before.tag, tag) })}
              preload={false}
              title={`Filter by the tag ${tag}`}
              className="rounded bg-accent-soft px-1.5 text-accent hover:underline"
            >
              {tag}
            </Link>
          ))}
        </span>
      ) : (
        NONE
      ),
  },
  {
    id: "command",
    header: "Command",
    kind: "property",
    width: 320,
    cell: ({ command }) =>
      command.length ? <code className="font-mono">{quoteCommand(command)}</code> : NONE,
  },
  {
    id: "error",
    header: "Why it failed",
    kind: "property",
    width: 280,
    sort: "error",
    cell: ({ error }) => text(error),
  },
  {
    id: "experiment",
    header: "Experiment",
    kind: "property",
    width: 140,
    sort: "experiment",
    cell: ({ experiment, experiment_name }) => text(experiment_name ?? experiment),
  },
  {
    id: "agent",
    header: "User",
    kind: "property",
    width: 120,
    sort: "agent",
    cell: ({ agent }) => text(agent),
  },
  {
    id: "type",
    header: "Type",
    kind: "property",
    width: 110,
    sort: "type",
    cell: ({ type }) => text(type === "run" ? "pipeline run" : type),
  },
  {
    id: "kind",
    header: "Kind",
    kind: "property",
    width: 150,
    sort: "kind",
    cell: ({ kind, of }) => text(of ? `${kind} of ${of}` : kind),
  },
  {
    id: "ended",
    header: "Ended",
    kind: "property",
    width: 140,
    sort: "ended",
    cell: ({ ended }) => <Time at={ended} />,
  },
  {
    id: "uid",
    header: "Uid",
    kind: "property",
    width: 290,
    cell: ({ uid }) => <code className="font-mono">{uid}</code>,
  },
  {
    id: "made",
    header: "Made",
    kind: "property",
    width: 110,
    cell: ({ made_elsewhere }) => (made_elsewhere ? "elsewhere" : "here"),
  },
];

const SHORT: Record<string, string> = { params: "parameter", metrics: "metric" };

/** The column of an id, such as `state` or `metrics.accuracy`; undefined for an unknown one. */
export function findColumn(id: string): Column | undefined {
  const known = PROPERTIES.find((column) => column.id === id);
  if (known) return known;
  const [, place, name] = /^(params|metrics)\.(.+)$/s.exec(id) ?? [];
  if (!place || !name) return undefined;
  const isMetric = place === "metrics";
  return {
    id,
    header: name,
    kind: SHORT[place] as Column["kind"],
    width: Math.min(150, Math.max(92, 44 + name.length * 8)),
    align: "right",
    sort: id,
    cell: (activity) => {
      const values: Record<string, unknown> = isMetric ? activity.metrics : activity.parameters;
      if (!Object.hasOwn(values, name)) return NONE;
      const shown = isMetric && values[name] === null ? "not finite" : formatValue(values[name]);
      return <span title={String(values[name])}>{shown}</span>;
    },
    summary: isMetric
      ? ({ metrics }) => {
          const range = Object.hasOwn(metrics, name) ? metrics[name] : undefined;
          if (!range) return null;
          const span = `${formatNumber(range.min)} to ${formatNumber(range.max)}`;
          return <span title={`mean; ${span}`}>⌀ {formatNumber(range.mean)}</span>;
        }
      : undefined,
  };
}

const LAST = ["git", "tags"];
const MOST_METRICS = 3;
const MOST_PARAMETERS = 5;
const TELLING = /acc|auc|f1|r2|loss|err|rmse|mse|mae/i;

/** The columns of a table for which nobody has chosen any: those that say most of these rows. */
export function defaultColumns(activities: Activity[]): string[] {
  const metrics = countNames(activities.map((one) => one.metrics));
  const telling = (name: string) => Number(TELLING.test(name));
  metrics.sort((a, b) => telling(b) - telling(a));
  const parameters = countNames(activities.map((one) => one.parameters));
  const varies = (name: string) =>
    Number(new Set(activities.map((one) => String(one.parameters[name]))).size > 1);
  parameters.sort((a, b) => varies(b) - varies(a));
  const pick = (place: string, names: string[]) => names.map((name) => `${place}.${name}`);
  return [
    "state",
    "started",
    "seconds",
    ...pick("metrics", metrics.slice(0, MOST_METRICS)),
    ...pick("params", parameters.slice(0, MOST_PARAMETERS)),
    ...LAST,
  ];
}

/** The names, those of most activities first. */
function countNames(values: Record<string, unknown>[]): string[] {
  const counts = new Map<string, number>();
  for (const name of values.flatMap(Object.keys)) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).map(([name]) => name);
}

const SHOWN_STATES: [string, string, string[]][] = [
  ["failed", "text-failure", ["failed", "broken"]],
  ["active", "text-running", ["running", "pending"]],
  ["well", "text-success", ["done", "succeeded"]],
];

function StateCounts({ states }: { states: Partial<Record<string, number>> }) {
  const sum = (names: string[]) => names.reduce((all, name) => all + (states[name] ?? 0), 0);
  return (
    <span className="inline-flex gap-2 text-sm">
      {SHOWN_STATES.map(([label, color, names]) =>
        sum(names) ? (
          <span key={label} className={color}>
            {sum(names)} {label === "well" ? "ok" : label}
          </span>
        ) : null,
      )}
    </span>
  );
}
