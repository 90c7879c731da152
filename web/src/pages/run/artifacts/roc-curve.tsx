// biome-ignore-all lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
// biome-ignore-all lint/suspicious/noArrayIndexKey: these parts have no other name, and never move
import { useState } from "react";
import { areaUnder, type RocPoint } from "./classification";

const SIZE = 260;
const LEFT = 44;
const BOTTOM = 36;
const TICKS = [0, 0.25, 0.5, 0.75, 1];

/** A ROC curve, and the same points as a table. */
export function RocCurve({ points }: { points: RocPoint[] }) {
  const [asTable, setAsTable] = useState(false);
  const area = areaUnder(points).toFixed(3);
  const x = (rate: number) => LEFT + rate * SIZE;
  const y = (rate: number) => 8 + (1 - rate) * SIZE;
  const path = points.map((point) => `${x(point.falsePositives)},${y(point.truePositives)}`);
  return (
    <figure className="flex min-w-0 flex-col gap-2">
      <figcaption className="text-quiet">
        ROC curve, area under it {area}{" "}
        <button
          type="button"
          className="text-accent underline"
          onClick={() => setAsTable(!asTable)}
        >
          {asTable ? "Show the curve" : "Show as a table"}
        </button>
      </figcaption>
      {asTable ? (
        <div
          className="max-h-80 overflow-auto"
          tabIndex={0}
          role="group"
          aria-label="Points of the ROC curve"
        >
          <table className="tabular-nums">
            <thead>
              <tr className="text-left text-quiet">
                <th scope="col" className="pr-6 font-normal">
                  Threshold
                </th>
                <th scope="col" className="pr-6 font-normal">
                  False positives
                </th>
                <th scope="col" className="font-normal">
                  True positives
                </th>
              </tr>
            </thead>
            <tbody>
              {points.map((point, at) => (
                <tr key={at}>
                  <td>{Number.isFinite(point.threshold) ? point.threshold : "–"}</td>
                  <td>{point.falsePositives.toFixed(4)}</td>
                  <td>{point.truePositives.toFixed(4)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <svg
          role="img"
          aria-label={`ROC curve with ${points.length} points, area under it ${area}`}
          viewBox={`0 0 ${LEFT + SIZE + 16} ${8 + SIZE + BOTTOM}`}
          className="w-full max-w-sm"
        >
          {TICKS.map((tick) => (
            <g key={tick} className="fill-quiet text-[11px]">
              <line x1={x(tick)} x2={x(tick)} y1={y(0)} y2={y(1)} className="stroke-line" />
              <line x1={x(0)} x2={x(1)} y1={y(tick)} y2={y(tick)} className="stroke-line" />
              <text x={x(tick)} y={y(0) + 15} textAnchor="middle">
                {tick}
              </text>
              <text x={x(0) - 6} y={y(tick) + 4} textAnchor="end">
                {tick}
              </text>
            </g>
          ))}
          <line
            x1={x(0)}
            y1={y(0)}
            x2={x(1)}
            y2={y(1)}
            className="stroke-line-strong"
            strokeDasharray="4 4"
          />
          <polyline points={path.join(" ")} className="fill-none stroke-accent" strokeWidth={2} />
          {points.length <= 60 &&
            points.map((point, at) => (
              <circle
                key={at}
                cx={x(point.falsePositives)}
                cy={y(point.truePositives)}
                r={3}
                className="fill-accent"
              >
                <title>
                  {`threshold ${point.threshold}: ${point.truePositives} true, ${point.falsePositives} false positives`}
                </title>
              </circle>
            ))}
          <text x={x(0.5)} y={y(0) + 31} textAnchor="middle" className="fill-quiet text-[12px]">
            False positive rate
          </text>
          <text
            x={11}
            y={y(0.5)}
            textAnchor="middle"
            transform={`rotate(-90 11 ${y(0.5)})`}
            className="fill-quiet text-[12px]"
          >
            True positive rate
          </text>
        </svg>
      )}
    </figure>
  );
}
