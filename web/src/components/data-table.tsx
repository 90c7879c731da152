import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useRef } from "react";

export interface Column<Row> {
  id: string;
  header: string;
  cell: (row: Row) => ReactNode;
  /** CSS width of the column, as in `grid-template-columns`. */
  width?: string;
  sortable?: boolean;
  align?: "right";
}

export interface Sort {
  column: string;
  descending: boolean;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  onOpen?: (row: Row) => void;
  sort?: Sort | null;
  onSort?: (sort: Sort) => void;
  selection?: { selected: Set<string>; onToggle: (key: string) => void };
  /** Called when the last rows become visible, to load more. */
  onEnd?: () => void;
}

const ROW_HEIGHT = 44;
const OVERSCAN = 12;

/**
 * A table of any length: only visible rows are in the document. `j`/`k` and the arrow keys move
 * between rows, Enter opens one, and `x` selects it. Its elements have the roles of a table, because
 * rows of a real one cannot be virtual.
 */
export function DataTable<Row>(props: Props<Row>) {
  const { columns, rows, rowKey, selection, onEnd } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
    onChange: (instance) => {
      const last = instance.getVirtualItems().at(-1);
      if (last && last.index >= rows.length - OVERSCAN) onEnd?.();
    },
  });
  const template = [
    ...(selection ? ["2.5rem"] : []),
    ...columns.map((column) => column.width ?? "minmax(6rem, 1fr)"),
  ].join(" ");
  const grid = { gridTemplateColumns: template };

  function moveFocus(event: KeyboardEvent<HTMLDivElement>, index: number) {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const next = Math.min(rows.length - 1, Math.max(0, index + step));
    event.preventDefault();
    virtualizer.scrollToIndex(next);
    requestAnimationFrame(() =>
      scroller.current?.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus(),
    );
  }

  return (
    <div
      ref={scroller}
      className="max-h-[calc(100vh-13rem)] min-h-24 overflow-auto rounded-lg border border-line bg-surface"
    >
      <div
        role="table"
        aria-label={props.label}
        aria-rowcount={rows.length + 1}
        className="min-w-max"
      >
        <HeaderRow {...props} style={grid} />
        <div role="rowgroup" className="relative" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => {
            const row = rows[item.index] as Row;
            const key = rowKey(row);
            return (
              <div
                key={key}
                role="row"
                aria-rowindex={item.index + 2}
                tabIndex={0}
                data-row={item.index}
                className="absolute inset-x-0 grid items-center border-b border-line hover:bg-sunken focus-visible:-outline-offset-2"
                style={{ ...grid, height: ROW_HEIGHT, top: item.start }}
                onClick={(event) => {
                  if (!isControl(event.target)) props.onOpen?.(row);
                }}
                onKeyDown={(event) => {
                  if (event.target !== event.currentTarget) return;
                  if (event.key === "Enter") props.onOpen?.(row);
                  else if (event.key === "x") selection?.onToggle(key);
                  else moveFocus(event, item.index);
                }}
              >
                {selection && (
                  <div role="cell" className="pl-3">
                    <input
                      type="checkbox"
                      aria-label={`Select ${key}`}
                      className="size-4 accent-accent"
                      checked={selection.selected.has(key)}
                      onClick={(event) => event.stopPropagation()}
                      onChange={() => selection.onToggle(key)}
                    />
                  </div>
                )}
                {columns.map((column) => (
                  <div
                    key={column.id}
                    role="cell"
                    className={`truncate px-3 ${column.align === "right" ? "text-right tabular-nums" : ""}`}
                  >
                    {column.cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** Whether a click is for a link or a button in a row, and not for the row. */
function isControl(target: EventTarget): boolean {
  return target instanceof Element && target.closest("a, button, input, label, select") !== null;
}

function HeaderRow<Row>({
  columns,
  sort,
  onSort,
  selection,
  style,
}: Props<Row> & { style: { gridTemplateColumns: string } }) {
  return (
    <div role="rowgroup" className="sticky top-0 z-10 border-b border-line bg-surface">
      <div role="row" aria-rowindex={1} className="grid items-center" style={style}>
        {selection && (
          <div role="columnheader">
            <span className="sr-only">Selected</span>
          </div>
        )}
        {columns.map((column) => {
          const sorted = sort?.column === column.id ? sort : null;
          const Arrow = sorted?.descending ? ArrowDown : ArrowUp;
          return (
            <div
              key={column.id}
              role="columnheader"
              aria-sort={sorted ? (sorted.descending ? "descending" : "ascending") : undefined}
              className={`truncate px-3 py-2 text-quiet ${column.align === "right" ? "text-right" : ""}`}
            >
              {column.sortable && onSort ? (
                <button
                  type="button"
                  className="inline-flex items-center gap-1 hover:text-ink"
                  onClick={() =>
                    onSort({ column: column.id, descending: !(sorted?.descending ?? false) })
                  }
                >
                  {column.header}
                  {sorted && <Arrow size={13} aria-hidden />}
                </button>
              ) : (
                column.header
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}
