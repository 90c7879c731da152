// biome-ignore-all lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
// biome-ignore-all lint/suspicious/noArrayIndexKey: these parts have no other name, and never move

/** The rows of a file: of CSV, or of Parquet. */
export function RowTable({
  columns,
  rows,
}: {
  columns: readonly string[];
  rows: readonly (readonly string[])[];
}) {
  return (
    <div
      className="max-h-[60vh] overflow-auto rounded-md border border-line"
      tabIndex={0}
      role="group"
      aria-label="Table"
    >
      <table className="min-w-full tabular-nums">
        <thead className="sticky top-0 bg-surface">
          <tr>
            {columns.map((name, at) => (
              <th
                key={at}
                scope="col"
                className="border-b border-line px-3 py-1.5 text-left whitespace-nowrap"
              >
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at} className="odd:bg-sunken/50">
              {row.map((cell, column) => (
                <td key={column} className="px-3 py-1 whitespace-nowrap">
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
