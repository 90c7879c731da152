import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { request, type Schemas } from "@/api/client";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Field, Select } from "@/components/fields/field";
import type { CompareSearch } from "../search";

const TextMergeView = lazy(() => import("./merge-view"));

const MOST_BYTES = 400_000;
type Comparison = Schemas["ActivityComparison"];
type Row = Schemas["ComparedRow"];

interface Props {
  comparison: Comparison;
  baseline: number;
  search: CompareSearch;
  onChange: (change: Partial<CompareSearch>) => void;
}

/** The entry that is compared with the baseline: the chosen one, else the first other one. */
export function findOther({ entries }: Comparison, baseline: number, other?: string): number {
  const chosen = entries.findIndex(({ id }) => id === other);
  return chosen >= 0 && chosen !== baseline ? chosen : baseline === 0 ? 1 : 0;
}

export function OtherSelect({ comparison, baseline, search, onChange }: Props) {
  const other = findOther(comparison, baseline, search.other);
  const { entries } = comparison;
  const describe = (entry: number) => entries[entry]?.name ?? entries[entry]?.id ?? "";
  return (
    <Field label={`Compare ${describe(baseline)}, the baseline, with`}>
      <Select
        value={entries[other]?.id}
        onChange={({ target }) => onChange({ other: target.value })}
      >
        {entries.map(({ id }, at) =>
          at === baseline ? null : (
            <option key={id} value={id}>
              {describe(at)}
            </option>
          ),
        )}
      </Select>
    </Field>
  );
}

/** The content of a file in two entries. Code first; inputs and outputs can be compared, too. */
export function ContentDiff(props: Props) {
  const { comparison, baseline, search, onChange } = props;
  const other = findOther(comparison, baseline, search.other);
  const files = listFiles(comparison, baseline, other);
  const file = files.find(({ row }) => row.name === search.file) ?? files[0];
  return (
    <div className="flex flex-col gap-4">
      <div className="grid max-w-3xl gap-4 sm:grid-cols-2">
        <OtherSelect {...props} />
        {file && (
          <Field label="File">
            <Select
              value={file.row.name}
              onChange={({ target }) => onChange({ file: target.value })}
            >
              {files.map(({ row, section }) => (
                <option key={`${section}/${row.name}`} value={row.name}>
                  {row.name} ({section}
                  {row.values[baseline] === row.values[other] ? ", equal" : ""})
                </option>
              ))}
            </Select>
          </Field>
        )}
      </div>
      {file ? (
        <FileDiff
          key={file.row.name}
          row={file.row}
          entries={[baseline, other]}
          comparison={comparison}
        />
      ) : (
        <EmptyState title="These two have no stored file in common" />
      )}
    </div>
  );
}

/** The files of which both have a stored version: first those that differ, and code. */
function listFiles(comparison: Comparison, a: number, b: number) {
  const order = ["code", "inputs", "outputs"];
  return comparison.sections
    .filter(({ name }) => order.includes(name))
    .sort((one, two) => order.indexOf(one.name) - order.indexOf(two.name))
    .flatMap(({ name, rows }) => rows.map((row) => ({ section: name, row })))
    .filter(({ row }) => row.versions?.[a] && row.versions[b])
    .sort((one, two) => Number(isEqual(one.row, a, b)) - Number(isEqual(two.row, a, b)));
}

function isEqual(row: Row, a: number, b: number): boolean {
  return row.values[a] === row.values[b];
}

function FileDiff({
  row,
  entries,
  comparison,
}: {
  row: Row;
  entries: [number, number];
  comparison: Comparison;
}) {
  const versions = entries.map((entry) => row.versions?.[entry] ?? "");
  const { data, error } = useQuery({
    queryKey: ["content", ...versions],
    queryFn: () => Promise.all(versions.map(readText)),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error) return <ErrorCard error={error} />;
  if (!data) return <Skeleton lines={8} />;
  const [a, b] = data;
  if (!a || !b) {
    return (
      <EmptyState title="This file is not text">
        Its digests differ, so its content does.
      </EmptyState>
    );
  }
  const labels = entries.map(
    (entry) => comparison.entries[entry]?.name ?? comparison.entries[entry]?.id ?? "",
  ) as [string, string];
  return (
    <>
      {(a.cut || b.cut) && (
        <p className="text-quiet">
          Only the first {MOST_BYTES.toLocaleString("en-US")} bytes are compared.
        </p>
      )}
      <SideBySide name={row.name} a={a.text} b={b.text} labels={labels} />
    </>
  );
}

export function SideBySide({
  name,
  a,
  b,
  labels,
}: {
  name: string;
  a: string;
  b: string;
  labels: [string, string];
}) {
  return (
    <section
      aria-label={name}
      className="min-w-0 overflow-hidden rounded-lg border border-line bg-surface"
    >
      <header className="grid grid-cols-2 border-b border-line font-medium">
        {labels.map((label, at) => (
          <span key={at === 0 ? "a" : "b"} className="truncate px-4 py-2">
            {label}
          </span>
        ))}
      </header>
      {a === b ? (
        <p className="border-b border-line px-4 py-2 text-quiet">Both are equal.</p>
      ) : null}
      <Suspense fallback={<Skeleton lines={8} />}>
        <TextMergeView name={name} a={a} b={b} labels={labels} />
      </Suspense>
    </section>
  );
}

/** The beginning of a stored file; null: it is not text. */
async function readText(version: string): Promise<{ text: string; cut: boolean } | null> {
  const path = version.split("/").map(encodeURIComponent).join("/");
  const address = new URL(`/api/v1/versions/${path}/content`, window.location.origin);
  const headers = { Range: `bytes=0-${MOST_BYTES - 1}` };
  const response = await request(new Request(address, { headers }));
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (bytes.includes(0)) return null;
  const size = Number(response.headers.get("Content-Range")?.split("/")[1] ?? bytes.length);
  return { text: new TextDecoder().decode(bytes), cut: size > bytes.length };
}
