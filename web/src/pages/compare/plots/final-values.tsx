import { formatNumber } from "@/pages/runs/values";
import { Swatch } from "../entry-list";
import { scale } from "./curves";
import { seriesColor } from "./series-colors";

interface Props {
  values: (number | null)[];
  labels: string[];
  marks: "bars" | "points";
  log: boolean;
}

/** The last value of a metric, for each entry: bars from zero, or points, which show small gaps. */
export function FinalValues({ values, labels, marks, log }: Props) {
  const known = values.filter((value) => value !== null);
  const least = Math.min(...known, ...(marks === "bars" && !log ? [0] : []));
  const greatest = Math.max(...known, ...(marks === "bars" && !log ? [0] : []));
  const place = (value: number) => 100 * scale(value, least, greatest, log);
  const zero = marks === "bars" && !log ? place(0) : 0;
  return (
    <ul className="flex flex-col gap-1">
      {values.map((value, entry) => (
        <li
          // biome-ignore lint/suspicious/noArrayIndexKey: one for each entry
          key={entry}
          className="grid grid-cols-[minmax(3rem,8rem)_1fr_4.5rem] items-center gap-2"
        >
          <span className="flex min-w-0 items-center gap-1.5">
            <Swatch entry={entry} />
            <span className="truncate" title={labels[entry]}>
              {labels[entry]}
            </span>
          </span>
          <span aria-hidden className="relative h-4 rounded-sm bg-sunken">
            {value !== null &&
              (marks === "bars" ? (
                <span
                  className="absolute inset-y-0 rounded-sm"
                  style={{
                    background: seriesColor(entry),
                    left: `${Math.min(zero, place(value))}%`,
                    width: `${Math.max(0.5, Math.abs(place(value) - zero))}%`,
                  }}
                />
              ) : (
                <span
                  className="absolute top-0.5 size-3 -translate-x-1/2 rounded-full"
                  style={{ background: seriesColor(entry), left: `${4 + place(value) * 0.92}%` }}
                />
              ))}
          </span>
          <span className="text-right tabular-nums">
            {value === null ? <span className="text-quiet">–</span> : formatNumber(value)}
          </span>
        </li>
      ))}
    </ul>
  );
}
