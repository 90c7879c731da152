import { useMemo } from "react";
import type { Schemas } from "@/api/client";
import { Button } from "@/components/button";
import { EmptyState } from "@/components/feedback";
import { Checkbox } from "@/components/fields/field";
import { formatValue } from "@/pages/runs/values";
import { Swatch } from "../entry-list";
import type { CompareSearch, Range } from "../search";
import { type Axis, buildAxes, defaultAxes, isWithin, valueAt, varies } from "./axes";
import { ParallelPlot } from "./parallel-plot";

const MOST_CHOICES = 200;

interface Props {
  comparison: Schemas["ActivityComparison"];
  search: CompareSearch;
  onChange: (change: Partial<CompareSearch>) => void;
}

export function ParallelTab({ comparison, search, onChange }: Props) {
  const axes = useMemo(() => buildAxes(comparison), [comparison]);
  const chosen = search.axes ?? defaultAxes(axes);
  const shown = chosen
    .map((id) => axes.find((axis) => axis.id === id))
    .filter((axis) => axis !== undefined);
  const ranges = search.ranges ?? {};
  const labels = comparison.entries.map(({ id, name }) => (name ? `${name} (${id})` : id));
  const within = labels.map((_, entry) => isWithin(shown, ranges, entry));
  const ids = comparison.entries.map(({ id }) => id).filter((_, entry) => within[entry]);
  function setRange(axis: string, range: Range | null) {
    const { [axis]: _, ...others } = ranges;
    const next = range ? { ...others, [axis]: range } : others;
    onChange({ ranges: Object.keys(next).length ? next : undefined });
  }
  const isLimited = Object.keys(ranges).length > 0;
  if (!axes.some(varies) && !search.axes) {
    return <EmptyState title="No parameter or metric differs between these" />;
  }
  return (
    <div className="flex flex-col gap-4">
      <section aria-label="Plot" className="min-w-0 rounded-lg border border-line bg-surface p-4">
        <p className="mb-2 text-quiet">
          Drag along an axis to select a range; click it to remove it.
        </p>
        <ParallelPlot axes={shown} ranges={ranges} labels={labels} onRange={setRange} />
        <div className="mt-2 flex flex-wrap items-center gap-x-4 gap-y-2" aria-live="polite">
          {labels.map((label, entry) => (
            <span
              key={label}
              className={`inline-flex items-center gap-1.5 ${within[entry] ? "" : "text-quiet line-through"}`}
            >
              <Swatch entry={entry} /> {label}
            </span>
          ))}
          {isLimited && (
            <>
              <Button onClick={() => onChange({ ranges: undefined })}>Remove the ranges</Button>
              <Button
                disabled={ids.length < 2 || ids.length === labels.length}
                onClick={() => onChange({ id: ids, ranges: undefined })}
              >
                Keep these {ids.length}
              </Button>
            </>
          )}
        </div>
      </section>
      <div className="grid gap-4 lg:grid-cols-2">
        <section aria-label="Axes" className="rounded-lg border border-line bg-surface p-4">
          <h2 className="mb-2 font-medium">Axes</h2>
          <div className="grid max-h-72 grid-cols-1 gap-x-4 overflow-y-auto sm:grid-cols-2">
            {axes.slice(0, MOST_CHOICES).map((axis) => (
              <div key={axis.id} className="min-w-0 py-0.5 break-all">
                <Checkbox
                  label={axis.label}
                  checked={chosen.includes(axis.id)}
                  onChange={({ target }) =>
                    onChange({
                      axes: target.checked
                        ? [...chosen, axis.id]
                        : chosen.filter((id) => id !== axis.id),
                    })
                  }
                />
                <span className="ml-1 text-sm text-quiet">
                  {axis.isMetric ? "metric" : "parameter"}
                  {varies(axis) ? "" : ", equal"}
                </span>
              </div>
            ))}
          </div>
        </section>
        <section aria-label="Ranges" className="rounded-lg border border-line bg-surface p-4">
          <h2 className="mb-2 font-medium">Ranges</h2>
          <div className="flex max-h-72 flex-col gap-2 overflow-y-auto">
            {shown.filter(varies).map((axis) => (
              <RangeFields
                key={axis.id}
                axis={axis}
                range={Object.hasOwn(ranges, axis.id) ? ranges[axis.id] : undefined}
                onChange={(range) => setRange(axis.id, range)}
              />
            ))}
          </div>
        </section>
      </div>
    </div>
  );
}

/** The range of an axis for those who do not drag. */
function RangeFields({
  axis,
  range = [0, 1],
  onChange,
}: {
  axis: Axis;
  range?: Range;
  onChange: (range: Range | null) => void;
}) {
  const [low, high] = range;
  function change(next: Range) {
    const sorted: Range = [Math.min(...next), Math.max(...next)];
    onChange(sorted[0] <= 0 && sorted[1] >= 1 ? null : sorted);
  }
  const fields: [string, number, (value: number) => Range][] = [
    ["from", low, (value) => [value, high]],
    ["to", high, (value) => [low, value]],
  ];
  return (
    <div className="grid grid-cols-[minmax(4rem,1fr)_2fr_2fr] items-center gap-3">
      <span className="truncate" title={axis.label}>
        {axis.label}
      </span>
      {fields.map(([word, value, build]) => (
        <span key={word} className="flex min-w-0 items-center gap-2">
          <input
            type="range"
            min={0}
            max={1}
            step={0.01}
            aria-label={`${axis.label} ${word}`}
            aria-valuetext={formatValue(valueAt(axis, value))}
            className="min-w-0 flex-1 accent-accent"
            value={value}
            onChange={({ target }) => change(build(Number(target.value)))}
          />
          <span className="w-16 shrink-0 truncate text-sm tabular-nums">
            {formatValue(valueAt(axis, value))}
          </span>
        </span>
      ))}
    </div>
  );
}
