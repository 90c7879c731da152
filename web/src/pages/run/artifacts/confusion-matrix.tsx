// biome-ignore-all lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
// biome-ignore-all lint/suspicious/noArrayIndexKey: these parts have no other name, and never move
import { accuracy, type ConfusionMatrix as Matrix } from "./classification";

/** Counts of predicted classes by true class; darker cells have a larger part of their row. */
export function ConfusionMatrix({ matrix }: { matrix: Matrix }) {
  const right = accuracy(matrix);
  return (
    <figure className="flex min-w-0 flex-col gap-2">
      <div className="overflow-auto" tabIndex={0} role="group" aria-label="Confusion matrix">
        <table className="border-collapse tabular-nums">
          <caption className="pb-1 text-left text-quiet">
            Confusion matrix: rows are true classes, columns predictions
          </caption>
          <thead>
            <tr>
              <th scope="col" className="px-2 py-1 text-left font-normal text-quiet">
                true \ predicted
              </th>
              {matrix.names.map((name, at) => (
                <th key={at} scope="col" className="max-w-32 truncate px-2 py-1 font-medium">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {matrix.rows.map((row, at) => {
              const total = row.reduce((sum, count) => sum + count, 0);
              return (
                <tr key={at}>
                  <th scope="row" className="max-w-40 truncate px-2 py-1 text-left font-medium">
                    {matrix.names[at]}
                  </th>
                  {row.map((count, column) => (
                    <td
                      key={column}
                      className="min-w-16 border border-line px-3 py-2 text-center"
                      style={{
                        background: `color-mix(in srgb, var(--color-accent) ${Math.round((total ? count / total : 0) * 40)}%, var(--color-surface))`,
                      }}
                    >
                      {count.toLocaleString("en")}
                      {total > 0 && (
                        <span className="block text-[0.8rem]">
                          {Math.round((count / total) * 100)} %
                        </span>
                      )}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {right !== null && (
        <figcaption className="text-quiet">
          {(right * 100).toFixed(1)} % were predicted correctly.
        </figcaption>
      )}
    </figure>
  );
}
