import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatNumber } from "@/pages/runs/values";
import { align, onlyPositive, type Point, smooth } from "./curves";
import { resolveColor, seriesColor } from "./series-colors";
import { useTheme } from "./use-theme";

const HEIGHT = 240;
const SYNC = "comparison";

export interface Curve {
  /** The place of the entry, which chooses the colour. */
  entry: number;
  label: string;
  points: readonly Point[];
}

interface Props {
  curves: Curve[];
  log: boolean;
  weight: number;
}

/** A metric over its steps, with one curve for each entry. All plots of a page share the cursor. */
export function CurvePlot({ curves, log, weight }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme changes resolved colours
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const plot = new uPlot(
      buildOptions(element, curves, log),
      buildData(curves, log, weight),
      element,
    );
    const observer = new ResizeObserver(() => {
      plot.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [curves, log, weight, theme]);
  return <div ref={place} className="min-w-0 overflow-hidden text-sm [&_.u-legend]:text-left" />;
}

function buildData(curves: Curve[], log: boolean, weight: number): uPlot.AlignedData {
  const { steps, values } = align(
    curves.map(({ points }) => {
      const smoothed = smooth(
        points.map(([, value]) => value),
        weight,
      );
      const shown = log ? onlyPositive(smoothed) : smoothed;
      return points.map(([step], at): Point => [step, shown[at] ?? null]);
    }),
  );
  return [steps, ...values] as uPlot.AlignedData;
}

function buildOptions(element: HTMLElement, curves: Curve[], log: boolean): uPlot.Options {
  const quiet = resolveColor("var(--color-quiet)", element);
  const line = resolveColor("var(--color-line)", element);
  const axis = {
    stroke: quiet,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1 },
  };
  return {
    width: Math.max(element.clientWidth, 100),
    height: HEIGHT,
    scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
    cursor: { sync: { key: SYNC, setSeries: true }, focus: { prox: 24 } },
    focus: { alpha: 0.3 },
    axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(describeTick) }],
    series: [
      { label: "step" },
      ...curves.map(({ entry, label }) => ({
        label,
        stroke: resolveColor(seriesColor(entry), element),
        width: 1.75,
        spanGaps: true,
        value: (_: uPlot, value: number | null) =>
          value === null || value === undefined ? "–" : formatNumber(value),
      })),
    ],
  };
}

function describeTick(value: number | null): string {
  return value === null ? "" : formatNumber(value);
}
