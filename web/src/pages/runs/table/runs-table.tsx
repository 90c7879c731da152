import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { parseSort, type RunsSearch } from "../search";
import { type Activity, type ActivityGroup, useRows } from "../use-activities";
import type { Column } from "./columns";
import type { RowLayout } from "./sections";
import { ActivityRow, GroupRow, LoadingRow, ROW_HEIGHT } from "./table-rows";
import { focusRow, useTableKeys } from "./use-table-keys";

const OVERSCAN = 10;
const CHECKBOX = 40;
const NAME = "min(228px, 52vw)";
const MENU = 48;
const BOTTOM = 24;
const LEAST_HEIGHT = 320;

interface Props {
  search: RunsSearch;
  columns: Column[];
  layout: RowLayout;
  groups: ActivityGroup[];
  onSort: (column: string) => void;
  onToggleGroup: (key: string | null) => void;
  onToggle: (id: string) => void;
  onOpen: (activity: Activity) => void;
  onCompare: () => void;
  actions: (activity: Activity) => React.ReactNode;
}

/**
 * The table of any number of activities. Only the visible rows are in the document, and only the pages
 * that they are on are asked for. Its elements have the roles of a table, because rows of a real one
 * cannot be virtual.
 */
export function RunsTable(props: Props) {
  const { search, columns, layout, groups, onToggle } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const height = useHeight(scroller);
  const [active, setActive] = useState(0);
  const virtualizer = useVirtualizer({
    count: layout.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
  });
  const items = virtualizer.getVirtualItems();
  const pages = layout.pagesBetween(items[0]?.index ?? 0, items.at(-1)?.index ?? 30);
  const findRow = useRows(search, layout, pages);
  useKeptPosition(scroller, layout, search, (added) => {
    setActive((position) => position + added);
    focusRow(scroller.current, active + added);
  });
  useTableKeys({
    scroller,
    active,
    length: layout.length,
    move: (next) => {
      setActive(next);
      virtualizer.scrollToIndex(next);
    },
    act: (key) => {
      if (key === "c") return props.onCompare();
      const place = layout.locate(active);
      if (place.kind === "header") {
        if (key === "Enter") props.onToggleGroup(groups[place.section]?.key ?? null);
        return;
      }
      const row = findRow(place.section, place.index);
      if (row) (key === "x" ? () => onToggle(row.id) : () => props.onOpen(row))();
    },
  });
  const template = `${CHECKBOX}px minmax(${NAME}, 1fr) ${columns.map((c) => `${c.width}px`).join(" ")} ${MENU}px`;
  const selected = new Set(search.selected);

  return (
    <div
      ref={scroller}
      className="relative overflow-auto rounded-lg border border-line bg-surface [scrollbar-gutter:stable]"
      style={{ height: Math.min(height, (layout.length + 1) * ROW_HEIGHT + 20) }}
    >
      <div role="table" aria-label="Runs" aria-rowcount={layout.length + 1} className="min-w-max">
        <HeaderRow search={search} columns={columns} template={template} onSort={props.onSort} />
        <div role="rowgroup" className="relative" style={{ height: virtualizer.getTotalSize() }}>
          {items.map(({ index, start }) => {
            const place = layout.locate(index);
            const group = groups[place.section];
            const common = { position: index, top: start, template, columns };
            const isActive = index === active;
            if (place.kind === "header") {
              return group ? (
                <GroupRow
                  key={index}
                  {...common}
                  group={group}
                  by={search.group ?? ""}
                  open={layout.sections[place.section]?.open ?? false}
                  active={isActive}
                  onToggle={props.onToggleGroup}
                />
              ) : null;
            }
            const row = findRow(place.section, place.index);
            return row ? (
              <ActivityRow
                key={index}
                {...common}
                activity={row}
                indented={search.group !== undefined}
                active={isActive}
                selected={selected.has(row.id)}
                onToggle={onToggle}
                onActivate={setActive}
                actions={props.actions}
              />
            ) : (
              <LoadingRow key={index} {...common} />
            );
          })}
        </div>
      </div>
    </div>
  );
}

function HeaderRow({
  search,
  columns,
  template,
  onSort,
}: {
  search: RunsSearch;
  columns: Column[];
  template: string;
  onSort: (column: string) => void;
}) {
  const { sort, order } = parseSort(search);
  const name = { id: "name", header: "Name", sort: "name" };
  return (
    <div role="rowgroup" className="sticky top-0 z-10 border-b border-line bg-surface">
      <div
        role="row"
        aria-rowindex={1}
        className="grid items-center"
        style={{ gridTemplateColumns: template, height: ROW_HEIGHT }}
      >
        <div role="columnheader" className="bg-surface sm:sticky sm:left-0">
          <span className="sr-only">Selected</span>
        </div>
        {[name, ...columns].map((column) => {
          const sorted = column.sort === sort;
          const Arrow = order === "desc" ? ArrowDown : ArrowUp;
          const right = "align" in column && column.align === "right";
          return (
            <div
              key={column.id}
              role="columnheader"
              title={column.header}
              aria-sort={sorted ? (order === "desc" ? "descending" : "ascending") : undefined}
              className={`min-w-0 px-3 text-quiet ${right ? "text-right" : ""} ${column.id === "name" ? "flex h-full items-center bg-surface sm:sticky sm:left-10" : ""}`}
            >
              {column.sort ? (
                <button
                  type="button"
                  className={`inline-flex max-w-full items-center gap-1 rounded font-medium hover:text-ink ${sorted ? "text-ink" : ""}`}
                  onClick={() => onSort(column.sort as string)}
                >
                  <span className="truncate">{column.header}</span>
                  {sorted && <Arrow size={13} aria-hidden className="shrink-0" />}
                </button>
              ) : (
                <span className="font-medium">{column.header}</span>
              )}
            </div>
          );
        })}
        <div role="columnheader" className="right-0 h-full bg-surface sm:sticky">
          <span className="sr-only">Actions</span>
        </div>
      </div>
    </div>
  );
}

/** The space that is left below the table's upper edge. */
function useHeight(element: RefObject<HTMLElement | null>): number {
  const [height, setHeight] = useState(600);
  useLayoutEffect(() => {
    const measure = () => {
      const top = (element.current?.getBoundingClientRect().top ?? 0) + window.scrollY;
      setHeight(Math.max(LEAST_HEIGHT, window.innerHeight - top - BOTTOM));
    };
    measure();
    // What is above the table changes its height, too: filters wrap, and a selection has a bar.
    const observer = new ResizeObserver(measure);
    const parent = element.current?.parentElement;
    for (const child of parent ? [parent, ...parent.children] : []) observer.observe(child);
    window.addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", measure);
    };
  }, [element]);
  return height;
}

/**
 * Rows that are added above keep those on the screen where they are, unless the first is shown. The
 * row with the focus is the same one afterwards: the next key must not act on another.
 */
function useKeptPosition(
  scroller: RefObject<HTMLDivElement | null>,
  layout: RowLayout,
  search: RunsSearch,
  onShift: (added: number) => void,
): void {
  const shift = useRef(onShift);
  shift.current = onShift;
  const before = useRef({ length: layout.length, view: "" });
  useLayoutEffect(() => {
    const { sort, order } = parseSort(search);
    const view = JSON.stringify([search.q, search.state, search.type, search.tag, search.archived]);
    const added = layout.length - before.current.length;
    const same = before.current.view === view;
    before.current = { length: layout.length, view };
    const above = sort === "started" && order === "desc" && search.group === undefined;
    if (!same || !above || added <= 0 || !scroller.current) return;
    const focused = scroller.current.querySelector("[data-row]:focus");
    if (focused) shift.current(added);
    if (scroller.current.scrollTop > 0) scroller.current.scrollTop += added * ROW_HEIGHT;
  }, [layout, scroller, search]);
  const view = JSON.stringify([search.q, search.state, search.type, search.tag, search.sort]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another view begins at its first row
  useEffect(() => {
    scroller.current?.scrollTo({ top: 0 });
  }, [view]);
}
