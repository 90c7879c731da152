import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import { Select } from "@/components/fields/field";
import { count } from "@/components/format/count";
import "uplot/dist/uPlot.min.css";

type Series = Record<string, [number, number][]>;

/** The scalars of TensorBoard, one at a time. */
export function ScalarsChart({ series }: { series: Series }) {
  const names = Object.keys(series).sort();
  const [chosen, setChosen] = useState(names[0] ?? "");
  const points = series[chosen] ?? [];
  if (!names.length) return <p className="text-quiet">The file has no scalars.</p>;
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <div className="max-w-xs">
        <Select
          aria-label="Scalar"
          value={chosen}
          onChange={(event) => setChosen(event.target.value)}
        >
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </Select>
      </div>
      <Plot name={chosen} points={points} />
    </div>
  );
}

function Plot({ name, points }: { name: string; points: [number, number][] }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const style = getComputedStyle(element);
    const axis = {
      stroke: style.getPropertyValue("color"),
      grid: { stroke: "rgba(128,128,128,.25)" },
    };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: 280,
        scales: { x: { time: false } },
        series: [
          { label: "step" },
          { label: name, stroke: style.getPropertyValue("--color-accent"), width: 2 },
        ],
        axes: [axis, axis],
      },
      [points.map(([step]) => step), points.map(([, value]) => value)],
      element,
    );
    const observer = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: 280 }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [name, points]);
  const last = points.at(-1);
  return (
    <figure className="min-w-0">
      <div ref={place} className="min-w-0 text-quiet" aria-hidden />
      <figcaption className="text-quiet">
        {name}: {count(points.length, "point")}
        {last && `, ${last[1]} at step ${last[0]}`}
      </figcaption>
    </figure>
  );
}
