import { Link } from "@tanstack/react-router";
import { Check, Copy } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { Button } from "@/components/button";
import { useCopy } from "@/components/copy-text";
import { EmptyState } from "@/components/feedback";
import { formatNumber, formatValue } from "@/pages/runs/values";
import { Swatch } from "../entry-list";

type Comparison = Schemas["ActivityComparison"];
type Section = Schemas["ComparedSection"];
type Row = Schemas["ComparedRow"];

const TITLES: Record<Section["name"], string> = {
  parameters: "Parameters",
  metrics: "Metrics",
  git: "Git",
  command: "Command",
  environment: "Environment",
  packages: "Packages",
  inputs: "Inputs",
  outputs: "Outputs",
  code: "Code",
};
const SHOWN_ROWS = 100;
const LONGEST = 160;

interface Props {
  comparison: Comparison;
  baseline: number;
  all: boolean;
  query: string;
}

/** All properties of the entries side by side; by default those that differ. */
export function Differences({ comparison, baseline, all, query }: Props) {
  const text = query.toLowerCase();
  const sections = comparison.sections
    .map((section) => ({
      ...section,
      rows: section.rows.filter(
        (row) => (all || row.differs) && row.name.toLowerCase().includes(text),
      ),
    }))
    .filter(({ rows }) => rows.length > 0);
  if (!sections.length) {
    return (
      <EmptyState title={query ? "Nothing has such a name" : "Nothing differs"}>
        {query || all
          ? null
          : "Parameters, metrics, code, environment, inputs and outputs are the same."}
      </EmptyState>
    );
  }
  return (
    <div className="flex flex-col gap-4">
      {sections.map((section) => (
        <SectionTable
          key={section.name}
          section={section}
          entries={comparison.entries}
          baseline={baseline}
        />
      ))}
    </div>
  );
}

function SectionTable({
  section,
  entries,
  baseline,
}: {
  section: Section;
  entries: Comparison["entries"];
  baseline: number;
}) {
  const [whole, setWhole] = useState(false);
  const rows = whole ? section.rows : section.rows.slice(0, SHOWN_ROWS);
  const title = TITLES[section.name];
  return (
    <section
      aria-label={title}
      className="min-w-0 overflow-hidden rounded-lg border border-line bg-surface"
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus */}
      <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={`${title}, values`}>
        <table
          className="w-full table-fixed border-collapse text-left"
          style={{ minWidth: `${12 + entries.length * 9}rem` }}
        >
          <thead>
            <tr className="border-b border-line">
              <th scope="col" className="w-48 bg-surface px-4 py-2 align-top sm:sticky sm:left-0">
                {title}
              </th>
              {entries.map(({ id, name }, at) => (
                <th key={id} scope="col" className="px-3 py-2 align-top font-medium text-quiet">
                  <span className="flex items-center gap-1.5" title={name ?? id}>
                    <Swatch entry={at} />
                    <span className="truncate">{name ?? id}</span>
                  </span>
                  {at === baseline && <span className="text-sm font-normal">baseline</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.name} className="border-b border-line last:border-0">
                <th
                  scope="row"
                  className="bg-surface px-4 py-1.5 align-top font-normal break-words sm:sticky sm:left-0"
                >
                  <RowName row={row} />
                </th>
                {row.values.map((value, at) => (
                  <Cell
                    // biome-ignore lint/suspicious/noArrayIndexKey: one cell for each entry
                    key={at}
                    row={row}
                    value={value}
                    base={row.values[baseline]}
                    isBaseline={at === baseline}
                    isMetric={section.name === "metrics"}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length < section.rows.length && (
        <div className="border-t border-line p-2">
          <Button look="quiet" onClick={() => setWhole(true)}>
            Show all {section.rows.length}
          </Button>
        </div>
      )}
      {section.left_out > 0 && (
        <p className="border-t border-line px-4 py-2 text-quiet">
          {section.left_out} more are not shown.
        </p>
      )}
    </section>
  );
}

/** Files of which two versions are stored can be compared. */
function RowName({ row }: { row: Row }) {
  const stored = (row.versions ?? []).filter(Boolean).length;
  return stored > 1 && row.differs ? (
    <Link
      to="/compare"
      search={(before) => ({ ...before, tab: "code" as const, file: row.name })}
      className="text-accent hover:underline"
      title="Compare the content"
    >
      {row.name}
    </Link>
  ) : (
    row.name
  );
}

function Cell({
  row,
  value,
  base,
  isBaseline,
  isMetric,
}: {
  row: Row;
  value: unknown;
  base: unknown;
  isBaseline: boolean;
  isMetric: boolean;
}) {
  const differs = row.differs && !isBaseline && value !== base;
  const change =
    isMetric && differs && typeof value === "number" && typeof base === "number"
      ? value - base
      : null;
  return (
    <td className={`px-1 py-0.5 align-top ${differs ? "bg-warning-soft" : ""}`}>
      {value === null || value === undefined ? (
        <span className="px-2 text-quiet">–</span>
      ) : (
        <CopyableValue value={value} />
      )}
      {change !== null && (
        <span className="px-2 text-sm whitespace-nowrap text-quiet tabular-nums">
          {change > 0 ? "+" : "−"}
          {formatNumber(Number(Math.abs(change).toPrecision(3)))}
        </span>
      )}
    </td>
  );
}

/** A click copies the whole value, of which only the beginning is shown. */
function CopyableValue({ value }: { value: unknown }) {
  const [copied, copy] = useCopy();
  const whole = typeof value === "string" ? value : JSON.stringify(value);
  const Icon = copied ? Check : Copy;
  return (
    <button
      type="button"
      title={copied ? "Copied" : `Copy: ${whole.slice(0, 500)}`}
      className="group inline-flex max-w-full items-start gap-1 rounded px-2 py-1 text-left hover:bg-sunken"
      onClick={() => copy(whole)}
    >
      <span className="min-w-0 break-words [overflow-wrap:anywhere]">{shorten(value)}</span>
      <Icon
        size={13}
        aria-hidden
        className="mt-1 shrink-0 text-quiet opacity-0 group-hover:opacity-100 group-focus-visible:opacity-100"
      />
    </button>
  );
}

function shorten(value: unknown): string {
  const text = formatValue(value);
  if (/^blake3:[0-9a-f]{64}$/.test(text)) return text.slice(0, 15);
  if (/^[0-9a-f]{40}$/.test(text)) return text.slice(0, 10);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
