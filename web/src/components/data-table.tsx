import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { memo, type ReactNode, useCallback, useRef } from "react";

export interface Column<Row> {
  id: string;
  header: string;
  cell: (row: Row) => ReactNode;
  /** CSS width of the column, as in `grid-template-columns`. */
  width?: string;
  sortable?: boolean;
  align?: "right";
  /** Whether it stays at the right edge where the columns need more than the window has. */
  pinned?: boolean;
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
/** Above the cells that it covers. */
const PINNED = "sticky right-0 bg-surface";

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

  // The same functions while the table scrolls: a row that is shown already is not drawn again.
  const latest = useRef(props);
  latest.current = props;
  const open = useCallback((row: Row) => latest.current.onOpen?.(row), []);
  const toggle = useCallback((key: string) => latest.current.selection?.onToggle(key), []);
  const move = useCallback(
    (from: number, step: number) => {
      const next = Math.min(latest.current.rows.length - 1, Math.max(0, from + step));
      virtualizer.scrollToIndex(next);
      requestAnimationFrame(() =>
        scroller.current?.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus(),
      );
    },
    [virtualizer],
  );

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
              <TableRow
                key={key}
                row={row}
                id={key}
                index={item.index}
                top={item.start}
                template={template}
                columns={columns}
                selected={selection ? selection.selected.has(key) : null}
                onOpen={open}
                onToggle={toggle}
                onMove={move}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

const STEPS: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

interface RowProps<Row> {
  row: Row;
  id: string;
  index: number;
  top: number;
  template: string;
  columns: Column<Row>[];
  /** Null: rows cannot be selected. */
  selected: boolean | null;
  onOpen: (row: Row) => void;
  onToggle: (id: string) => void;
  onMove: (from: number, step: number) => void;
}

function PlainRow<Row>({
  row,
  id,
  index,
  top,
  template,
  columns,
  selected,
  onOpen,
  onToggle,
  onMove,
}: RowProps<Row>) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      tabIndex={0}
      data-row={index}
      className="absolute inset-x-0 group grid items-center border-b border-line hover:bg-sunken focus-visible:-outline-offset-2"
      style={{ gridTemplateColumns: template, height: ROW_HEIGHT, top }}
      onClick={(event) => {
        if (!isControl(event.target)) onOpen(row);
      }}
      onKeyDown={(event) => {
        if (event.target !== event.currentTarget) return;
        const step = STEPS[event.key];
        if (event.key === "Enter") onOpen(row);
        else if (event.key === "x" && selected !== null) onToggle(id);
        else if (step) {
          event.preventDefault();
          onMove(index, step);
        }
      }}
    >
      {selected !== null && (
        <div role="cell" className="pl-3">
          <input
            type="checkbox"
            aria-label={`Select ${id}`}
            className="size-4 accent-accent"
            checked={selected}
            onClick={(event) => event.stopPropagation()}
            onChange={() => onToggle(id)}
          />
        </div>
      )}
      {columns.map((column) => (
        <div
          key={column.id}
          role="cell"
          className={`truncate px-3 ${column.align === "right" ? "text-right tabular-nums" : ""} ${column.pinned ? `${PINNED} group-hover:bg-sunken` : ""}`}
        >
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}

const TableRow = memo(PlainRow) as typeof PlainRow;

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
              className={`truncate px-3 py-2 text-quiet ${column.align === "right" ? "text-right" : ""} ${column.pinned ? PINNED : ""}`}
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
