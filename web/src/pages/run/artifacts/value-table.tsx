/** Names and values, such as parameters, metrics or variables. */
export function ValueTable({ values, label }: { values: Record<string, unknown>; label: string }) {
  return (
    <dl
      aria-label={label}
      className="grid min-w-0 grid-cols-[minmax(6rem,max-content)_1fr] gap-x-6 gap-y-1"
    >
      {Object.entries(values).map(([name, value]) => (
        <div key={name} className="col-span-2 grid grid-cols-subgrid">
          <dt className="max-w-72 break-words text-quiet">{name}</dt>
          <dd className="min-w-0 font-mono text-[0.93rem] break-all whitespace-pre-wrap">
            {formatValue(value)}
          </dd>
        </div>
      ))}
    </dl>
  );
}

const MAX_CHARACTERS = 4000;

export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "–";
  const text =
    typeof value === "string"
      ? value
      : JSON.stringify(value, null, typeof value === "object" ? 1 : 0);
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
}
