import { lazy, Suspense, useMemo, useState } from "react";
import type { Schemas } from "@/api/client";
import { Button } from "@/components/button";
import { EmptyState, Skeleton } from "@/components/feedback";
import { Checkbox, Select } from "@/components/fields/field";
import type { CompareSearch } from "../search";
import type { Curve } from "./curve-plot";
import { FinalValues } from "./final-values";

const CurvePlot = lazy(() =>
  import("./curve-plot").then((module) => ({ default: module.CurvePlot })),
);

const SHOWN = 12;

type Comparison = Schemas["ActivityComparison"];

interface Props {
  comparison: Comparison;
  search: CompareSearch;
  onChange: (change: Partial<CompareSearch>) => void;
}

/** A plot for each metric: its curves, if there are any, else its last values. */
export function MetricPlots({ comparison, search, onChange }: Props) {
  const [shown, setShown] = useState(SHOWN);
  const log = search.log ?? false;
  const weight = search.smooth ?? 0;
  const plots = useMemo(() => collectPlots(comparison), [comparison]);
  const labels = comparison.entries.map(({ id, name }) => name ?? id);
  const text = (search.q ?? "").toLowerCase();
  const matching = plots.filter(({ name }) => name.toLowerCase().includes(text));
  if (!plots.length) {
    return (
      <EmptyState title="None of these has metrics">
        Write numbers to <code className="font-mono">metrics.json</code>, or log them to TensorBoard
        or to an <code className="font-mono">Output[Metrics]</code> of a pipeline.
      </EmptyState>
    );
  }
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-center gap-x-5 gap-y-2">
        <Checkbox
          label="Logarithmic"
          checked={log}
          onChange={({ target }) => onChange({ log: target.checked || undefined })}
        />
        <label className="inline-flex items-center gap-2">
          Smoothing
          <input
            type="range"
            min={0}
            max={0.99}
            step={0.01}
            className="w-36 accent-accent"
            value={weight}
            onChange={({ target }) => onChange({ smooth: Number(target.value) || undefined })}
          />
          <output className="w-9 tabular-nums">{weight.toFixed(2)}</output>
        </label>
        <span>
          <Select
            aria-label="Last values"
            value={search.marks ?? "bars"}
            onChange={({ target }) =>
              onChange({ marks: target.value === "points" ? "points" : undefined })
            }
          >
            <option value="bars">Last values as bars</option>
            <option value="points">Last values as points</option>
          </Select>
        </span>
      </div>
      {matching.length === 0 && <p className="text-quiet">No metric has such a name.</p>}
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
        {matching.slice(0, shown).map(({ name, curves, values }) => (
          <section
            key={name}
            aria-label={name}
            className="min-w-0 rounded-lg border border-line bg-surface p-4"
          >
            <h2 className="mb-2 font-medium break-words">{name}</h2>
            {curves.length > 0 ? (
              <Suspense fallback={<Skeleton lines={6} />}>
                <CurvePlot curves={curves} log={log} weight={weight} />
              </Suspense>
            ) : (
              <FinalValues
                values={values}
                labels={labels}
                marks={search.marks ?? "bars"}
                log={log && values.every((value) => value === null || value > 0)}
              />
            )}
          </section>
        ))}
      </div>
      {matching.length > shown && (
        <div>
          <Button onClick={() => setShown(shown + SHOWN)}>
            Show more of {matching.length} metrics
          </Button>
        </div>
      )}
    </div>
  );
}

interface Plot {
  name: string;
  curves: Curve[];
  values: (number | null)[];
}

/** Metrics with curves first. */
function collectPlots({ entries, sections, series }: Comparison): Plot[] {
  const plots = new Map<string, Plot>();
  for (const [name, curves] of Object.entries(series)) {
    const shown = curves.flatMap(({ id, points }) => {
      const entry = entries.findIndex((one) => one.id === id);
      const label = entries[entry]?.name ?? id;
      // A curve of one point is a value.
      return entry >= 0 && points.length > 1 ? [{ entry, label, points }] : [];
    });
    if (shown.length) plots.set(name, { name, curves: shown as Curve[], values: [] });
  }
  for (const row of sections.find(({ name }) => name === "metrics")?.rows ?? []) {
    const values = row.values.map((value) => (typeof value === "number" ? value : null));
    if (!plots.has(row.name) && values.some((value) => value !== null)) {
      plots.set(row.name, { name: row.name, curves: [], values });
    }
  }
  return [...plots.values()];
}
