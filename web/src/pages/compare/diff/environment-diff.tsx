import type { Schemas } from "@/api/client";
import { EmptyState } from "@/components/feedback";
import { formatValue } from "@/pages/runs/values";
import type { CompareSearch } from "../search";
import { findOther, OtherSelect, SideBySide } from "./content-diff";

type Comparison = Schemas["ActivityComparison"];

const SECTIONS: [Schemas["ComparedSection"]["name"], string][] = [
  ["packages", "Packages"],
  ["environment", "Environment: system, image and variables"],
];

interface Props {
  comparison: Comparison;
  baseline: number;
  search: CompareSearch;
  onChange: (change: Partial<CompareSearch>) => void;
}

/** Packages, image and variables of two entries, as sorted lines side by side. */
export function EnvironmentDiff(props: Props) {
  const { comparison, baseline, search } = props;
  const other = findOther(comparison, baseline, search.other);
  const labels = [baseline, other].map(
    (entry) => comparison.entries[entry]?.name ?? comparison.entries[entry]?.id ?? "",
  ) as [string, string];
  const texts = SECTIONS.map(([section, title]) => ({
    title,
    a: writeLines(comparison, section, baseline),
    b: writeLines(comparison, section, other),
  })).filter(({ a, b }) => a || b);
  return (
    <div className="flex flex-col gap-4">
      <div className="max-w-md">
        <OtherSelect {...props} />
      </div>
      {texts.map(({ title, a, b }) => (
        <div key={title} className="flex min-w-0 flex-col gap-2">
          <h2>{title}</h2>
          <SideBySide name={title} a={a} b={b} labels={labels} />
        </div>
      ))}
      {!texts.length && (
        <EmptyState title="Neither of these recorded an environment">
          Runs whose tasks were all reused, or never started, have none.
        </EmptyState>
      )}
    </div>
  );
}

export function writeLines(comparison: Comparison, section: string, entry: number): string {
  const rows = comparison.sections.find(({ name }) => name === section)?.rows ?? [];
  return rows
    .filter((row) => row.values[entry] !== null && row.values[entry] !== undefined)
    .map((row) => `${row.name} = ${formatValue(row.values[entry])}`)
    .sort()
    .join("\n");
}
