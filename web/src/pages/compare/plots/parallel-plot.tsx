import { type PointerEvent, useRef, useState } from "react";
import { formatValue } from "@/pages/runs/values";
import type { Range } from "../search";
import { type Axis, brush, isWithin, position, valueAt } from "./axes";
import { seriesColor } from "./series-colors";

const HEIGHT = 340;
const TOP = 44;
const BOTTOM = 26;
const GAP = 130;
const SIDE = 70;
const BRUSH = 28;
const MOST_TICKS = 6;
const LONGEST = 16;

interface Props {
  axes: Axis[];
  ranges: Record<string, Range>;
  labels: string[];
  onRange: (axis: string, range: Range | null) => void;
}

/** A line for each entry across all axes. A drag along an axis selects the entries in a range. */
export function ParallelPlot({ axes, ranges, labels, onRange }: Props) {
  const [hovered, setHovered] = useState<number | null>(null);
  const width = Math.max(1, axes.length - 1) * GAP + 2 * SIDE;
  const height = HEIGHT - TOP - BOTTOM;
  const x = (axis: number) => SIDE + axis * GAP;
  const y = (place: number) => TOP + (1 - place) * height;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label="Parallel coordinates">
      <svg
        viewBox={`0 0 ${width} ${HEIGHT}`}
        style={{ minWidth: width * 0.8, maxWidth: width * 1.6 }}
        className="w-full text-[12px] select-none"
        role="img"
        aria-label={`${labels.length} entries over ${axes.map(({ label }) => label).join(", ")}`}
      >
        {labels.map((label, entry) => (
          <Line
            key={label}
            axes={axes}
            entry={entry}
            x={x}
            y={y}
            label={label}
            faint={!isWithin(axes, ranges, entry) || (hovered !== null && hovered !== entry)}
            onHover={setHovered}
          />
        ))}
        {axes.map((axis, at) => (
          <AxisLine
            key={axis.id}
            axis={axis}
            x={x(at)}
            y={y}
            height={height}
            range={Object.hasOwn(ranges, axis.id) ? ranges[axis.id] : undefined}
            onRange={(range) => onRange(axis.id, range)}
          />
        ))}
      </svg>
    </div>
  );
}

/** Where an entry has no value, its line has a gap. */
function Line({
  axes,
  entry,
  x,
  y,
  label,
  faint,
  onHover,
}: {
  axes: Axis[];
  entry: number;
  x: (axis: number) => number;
  y: (place: number) => number;
  label: string;
  faint: boolean;
  onHover: (entry: number | null) => void;
}) {
  let path = "";
  let drawing = false;
  const dots: [number, number][] = [];
  axes.forEach((axis, at) => {
    const place = position(axis, entry);
    if (place === null) {
      drawing = false;
      return;
    }
    path += `${drawing ? "L" : "M"}${x(at)} ${y(place)}`;
    drawing = true;
    dots.push([x(at), y(place)]);
  });
  return (
    <g
      style={{ stroke: seriesColor(entry), fill: seriesColor(entry) }}
      opacity={faint ? 0.15 : 1}
      onPointerEnter={() => onHover(entry)}
      onPointerLeave={() => onHover(null)}
    >
      <title>{label}</title>
      <path d={path} fill="none" strokeWidth={2} />
      <path d={path} fill="none" strokeWidth={12} strokeOpacity={0} pointerEvents="stroke" />
      {dots.map(([cx, cy]) => (
        <circle key={cx} cx={cx} cy={cy} r={3} />
      ))}
    </g>
  );
}

function AxisLine({
  axis,
  x,
  y,
  height,
  range,
  onRange,
}: {
  axis: Axis;
  x: number;
  y: (place: number) => number;
  height: number;
  range: Range | undefined;
  onRange: (range: Range | null) => void;
}) {
  const from = useRef<number | null>(null);
  const [dragged, setDragged] = useState<Range | null>(null);
  const shown = dragged ?? range;
  function place(event: PointerEvent<SVGRectElement>): number {
    const box = event.currentTarget.getBoundingClientRect();
    return 1 - (event.clientY - box.top) / box.height;
  }
  return (
    <g>
      <text x={x} y={16} textAnchor="middle" className="fill-ink font-medium">
        <title>{axis.id}</title>
        {cut(axis.label)}
      </text>
      <line x1={x} x2={x} y1={y(1)} y2={y(0)} className="stroke-line-strong" />
      {ticks(axis).map((tick) => (
        <text
          key={tick}
          x={x + 6}
          y={y(tick) + 4}
          className="fill-quiet [paint-order:stroke] [stroke-width:4px] [stroke:var(--color-surface)]"
        >
          {cut(formatValue(valueAt(axis, tick)))}
        </text>
      ))}
      {shown && (
        <rect
          x={x - 7}
          width={14}
          y={y(shown[1])}
          height={(shown[1] - shown[0]) * height}
          className="fill-accent stroke-accent"
          fillOpacity={0.25}
        />
      )}
      <rect
        x={x - BRUSH / 2}
        width={BRUSH}
        y={y(1)}
        height={height}
        fill="transparent"
        className="cursor-ns-resize touch-none"
        data-axis={axis.id}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          from.current = place(event);
        }}
        onPointerMove={(event) => {
          if (from.current !== null) setDragged(brush(from.current, place(event)));
        }}
        onPointerUp={(event) => {
          if (from.current !== null) onRange(brush(from.current, place(event)));
          from.current = null;
          setDragged(null);
        }}
        onPointerCancel={() => {
          from.current = null;
          setDragged(null);
        }}
      />
    </g>
  );
}

function ticks(axis: Axis): number[] {
  const { numbers, categories } = axis;
  if (numbers) return numbers.least === numbers.greatest ? [0.5] : [0, 0.5, 1];
  if (categories.length <= 1) return [0.5];
  const step = Math.ceil(categories.length / MOST_TICKS);
  return categories
    .map((_, at) => at)
    .filter((at) => at % step === 0)
    .map((at) => at / (categories.length - 1));
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
