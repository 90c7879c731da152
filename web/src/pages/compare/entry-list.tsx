import { Link } from "@tanstack/react-router";
import { X } from "lucide-react";
import type { Schemas } from "@/api/client";
import { IconButton } from "@/components/button";
import { Duration, Time } from "@/components/format/time";
import { StateBadge } from "@/components/state-badge";
import { seriesColor } from "./plots/series-colors";

type Entry = Schemas["ComparedEntry"];

export function Swatch({ entry }: { entry: number }) {
  return (
    <span
      aria-hidden
      className="inline-block size-3 shrink-0 rounded-sm"
      style={{ background: seriesColor(entry) }}
    />
  );
}

interface Props {
  entries: readonly Entry[];
  baseline: number;
  onBaseline: (id: string) => void;
  onRemove: ((id: string) => void) | null;
}

/** What is compared. Their colours are the same in all plots. */
export function EntryList({ entries, baseline, onBaseline, onRemove }: Props) {
  return (
    <fieldset className="min-w-0">
      <legend className="sr-only">Baseline</legend>
      <ul className="grid grid-cols-[repeat(auto-fill,minmax(15rem,1fr))] gap-2">
        {entries.map(({ id, name, state, started, seconds }, at) => (
          <li
            key={id}
            className={`flex min-w-0 items-start gap-2 rounded-lg border bg-surface py-2 pr-2 pl-3 ${at === baseline ? "border-accent" : "border-line"}`}
          >
            <span className="mt-1.5">
              <Swatch entry={at} />
            </span>
            <div className="min-w-0 flex-1">
              <div className="flex min-w-0 items-center gap-2">
                <Link
                  to="/runs/$id"
                  params={{ id }}
                  preload={false}
                  className="min-w-0 truncate font-medium hover:underline"
                  title={name ?? id}
                >
                  {name ?? id}
                </Link>
                {name && <code className="shrink-0 text-quiet">{id}</code>}
                <span className="flex-1" />
                {onRemove && (
                  <IconButton
                    label={`Do not compare ${id}`}
                    className="-my-1 min-h-7 shrink-0 px-1.5"
                    onClick={() => onRemove(id)}
                  >
                    <X size={15} aria-hidden />
                  </IconButton>
                )}
              </div>
              <div className="truncate text-sm text-quiet">
                <Time at={started} /> · <Duration seconds={seconds} />
              </div>
              <div className="mt-1 flex flex-wrap items-center gap-3">
                <StateBadge state={state} />
                <label className="inline-flex items-center gap-1.5 text-sm">
                  <input
                    type="radio"
                    name="baseline"
                    className="accent-accent"
                    checked={at === baseline}
                    onChange={() => onBaseline(id)}
                  />
                  Baseline
                </label>
              </div>
            </div>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}
