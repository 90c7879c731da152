import { useMemo } from "react";
import type { Schemas } from "@/api/client";
import { EmptyState } from "@/components/feedback";
import { Field, Select } from "@/components/fields/field";
import { formatValue } from "@/pages/runs/values";
import { Swatch } from "../entry-list";
import type { CompareSearch } from "../search";
import { type Axis, buildAxes, position, valueAt, varies } from "./axes";
import { seriesColor } from "./series-colors";

const WIDTH = 640;
const HEIGHT = 380;
const LEFT = 76;
const BOTTOM = 44;
const EDGE = 24;
const TICKS = [0, 0.25, 0.5, 0.75, 1];
const MOST_TICKS = 6;
const LONGEST = 12;

interface Props {
  comparison: Schemas["ActivityComparison"];
  search: CompareSearch;
  onChange: (change: Partial<CompareSearch>) => void;
}

/** One parameter or metric against another: a point for each entry. */
export function ScatterTab({ comparison, search, onChange }: Props) {
  const axes = useMemo(() => buildAxes(comparison), [comparison]);
  const find = (id: string | undefined) => axes.find((axis) => axis.id === id);
  const x = find(search.x) ?? axes.find((axis) => !axis.isMetric && varies(axis)) ?? axes[0];
  const y =
    find(search.y) ??
    axes.find((axis) => axis.isMetric && varies(axis)) ??
    axes.find((axis) => axis.isMetric);
  if (!x || !y) return <EmptyState title="These have no parameters or metrics to plot" />;
  const labels = comparison.entries.map(({ id, name }) => name ?? id);
  const shown = labels.map((_, entry) => [position(x, entry), position(y, entry)] as const);
  const missing = shown.filter(([left, up]) => left === null || up === null).length;
  return (
    <div className="grid gap-4 lg:grid-cols-[1fr_18rem]">
      <section aria-label="Plot" className="min-w-0 rounded-lg border border-line bg-surface p-4">
        <ScatterPlot x={x} y={y} points={shown} labels={labels} />
      </section>
      <div className="flex flex-col gap-4">
        <AxisSelect
          label="Across"
          axes={axes}
          value={x.id}
          onChange={(id) => onChange({ x: id })}
        />
        <AxisSelect label="Up" axes={axes} value={y.id} onChange={(id) => onChange({ y: id })} />
        <ul className="flex flex-col gap-1">
          {labels.map((label, entry) => (
            <li key={comparison.entries[entry]?.id} className="flex min-w-0 items-center gap-1.5">
              <Swatch entry={entry} />
              <span className="min-w-0 flex-1 truncate" title={label}>
                {label}
              </span>
              <span className="text-quiet tabular-nums">
                {formatValue(x.values[entry])}, {formatValue(y.values[entry])}
              </span>
            </li>
          ))}
        </ul>
        {missing > 0 && (
          <p className="text-quiet">{missing} without a value for both are not in the plot.</p>
        )}
      </div>
    </div>
  );
}

function AxisSelect({
  label,
  axes,
  value,
  onChange,
}: {
  label: string;
  axes: Axis[];
  value: string;
  onChange: (id: string) => void;
}) {
  const groups: [string, Axis[]][] = [
    ["Parameters", axes.filter(({ isMetric }) => !isMetric)],
    ["Metrics", axes.filter(({ isMetric }) => isMetric)],
  ];
  return (
    <Field label={label}>
      <Select value={value} onChange={({ target }) => onChange(target.value)}>
        {groups.map(([title, members]) => (
          <optgroup key={title} label={title}>
            {members.map((axis) => (
              <option key={axis.id} value={axis.id}>
                {axis.label}
              </option>
            ))}
          </optgroup>
        ))}
      </Select>
    </Field>
  );
}

function ScatterPlot({
  x,
  y,
  points,
  labels,
}: {
  x: Axis;
  y: Axis;
  points: (readonly [number | null, number | null])[];
  labels: string[];
}) {
  const left = (place: number) => LEFT + EDGE + place * (WIDTH - LEFT - 2 * EDGE);
  const top = (place: number) => EDGE + (1 - place) * (HEIGHT - BOTTOM - 2 * EDGE);
  return (
    <svg
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      className="mx-auto w-full max-w-4xl text-[12px]"
      role="img"
      aria-label={`${y.label} over ${x.label}, of ${labels.length} entries`}
    >
      {places(x).map((place) => (
        <g key={`x${place}`}>
          <line
            x1={left(place)}
            x2={left(place)}
            y1={8}
            y2={HEIGHT - BOTTOM}
            className="stroke-line"
          />
          <text x={left(place)} y={HEIGHT - BOTTOM + 16} textAnchor="middle" className="fill-quiet">
            {tickLabel(x, place)}
          </text>
        </g>
      ))}
      {places(y).map((place) => (
        <g key={`y${place}`}>
          <line x1={LEFT} x2={WIDTH - 8} y1={top(place)} y2={top(place)} className="stroke-line" />
          <text x={LEFT - 8} y={top(place) + 4} textAnchor="end" className="fill-quiet">
            {tickLabel(y, place)}
          </text>
        </g>
      ))}
      <text x={(LEFT + WIDTH) / 2} y={HEIGHT - 6} textAnchor="middle" className="fill-ink">
        {x.label}
      </text>
      <text
        transform={`translate(14 ${(HEIGHT - BOTTOM) / 2}) rotate(-90)`}
        textAnchor="middle"
        className="fill-ink"
      >
        {y.label}
      </text>
      {points.map(([across, up], entry) =>
        across === null || up === null ? null : (
          // biome-ignore lint/suspicious/noArrayIndexKey: one for each entry
          <g key={entry}>
            <title>{`${labels[entry]}: ${formatValue(x.values[entry])}, ${formatValue(y.values[entry])}`}</title>
            <circle
              cx={left(across)}
              cy={top(up)}
              r={6}
              style={{ fill: seriesColor(entry) }}
              className="stroke-surface"
              strokeWidth={1.5}
            />
            <text
              x={left(across) + (across > 0.8 ? -9 : 9)}
              y={top(up) - 7}
              textAnchor={across > 0.8 ? "end" : "start"}
              className="fill-quiet"
            >
              {cut(labels[entry] ?? "")}
            </text>
          </g>
        ),
      )}
    </svg>
  );
}

function places({ numbers, categories }: Axis): number[] {
  if (numbers) return numbers.least === numbers.greatest ? [0.5] : TICKS;
  if (categories.length <= 1) return [0.5];
  const step = Math.ceil(categories.length / MOST_TICKS);
  return categories
    .map((_, at) => at)
    .filter((at) => at % step === 0)
    .map((at) => at / (categories.length - 1));
}

function tickLabel(axis: Axis, place: number): string {
  return cut(formatValue(valueAt(axis, place)));
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
