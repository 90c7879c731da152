import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useRef, useState } from "react";
import type { Schemas } from "@/api/client";
import { Button } from "@/components/button";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Page } from "@/components/page";
import { MOST_COMPARED, SelectionBar } from "./actions/selection-bar";
import { FilterBar } from "./filter-bar";
import { isFiltered, type RunsSearch, toggle, toggleSort } from "./search";
import { ColumnPicker } from "./table/column-picker";
import { defaultColumns, findColumn } from "./table/columns";
import { RowMenu } from "./table/row-menu";
import { RunsTable } from "./table/runs-table";
import { type Activity, useFirstPage, useGroups, useRowLayout } from "./use-activities";

const MOST_OPEN = 50;

/** Executions and pipeline runs in one table. The URL has the whole view. */
export function RunsPage() {
  const search = useSearch({ from: "/runs" });
  const navigate = useNavigate({ from: "/runs" });
  const [choosing, setChoosing] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const first = useFirstPage(search);
  const columns = useShownColumns(search, first.data);
  const {
    groups,
    leftOut,
    error: groupsError,
  } = useGroups(
    search,
    columns.map(({ id }) => id),
  );
  const layout = useRowLayout(search, first.data?.total, groups);

  const change = useCallback(
    (changed: Partial<RunsSearch>) =>
      void navigate({ search: (before) => ({ ...before, ...changed }), replace: true }),
    [navigate],
  );
  const onToggle = useCallback(
    (id: string) =>
      void navigate({
        search: (before) => ({ ...before, selected: toggle(before.selected, id) }),
        replace: true,
      }),
    [navigate],
  );
  const actions = useCallback(
    (activity: Activity) => <RowMenu activity={activity} onError={setFailure} />,
    [],
  );
  const selected = search.selected ?? [];
  function compare() {
    if (selected.length >= 2 && selected.length <= MOST_COMPARED) {
      navigate({ to: "/compare", search: { id: selected } });
    }
  }
  const error = first.error ?? groupsError ?? failure;
  const total = first.data?.total;
  return (
    <Page
      title="Runs"
      subtitle={
        total !== null && total !== undefined
          ? describeTotal(total, search, first.data?.unmeasured ?? 0)
          : undefined
      }
    >
      <FilterBar
        search={search}
        parameters={first.data?.parameters ?? []}
        onChange={change}
        onColumns={() => setChoosing(true)}
        expand={
          search.group
            ? {
                all: () =>
                  change({
                    open: groups?.slice(0, MOST_OPEN).map((group) => group.key),
                  }),
                none: () => change({ open: undefined }),
              }
            : null
        }
      />
      {error !== null && <ErrorCard error={error} />}
      {selected.length > 0 && (
        <SelectionBar
          selected={selected}
          onCompare={compare}
          onClear={() => change({ selected: undefined })}
        />
      )}
      {layout.length > 0 ? (
        <RunsTable
          search={search}
          columns={columns}
          layout={layout}
          groups={groups ?? []}
          onSort={(column) => change({ sort: toggleSort(search, column) })}
          onToggleGroup={(key) => change({ open: toggle(search.open, key) })}
          onToggle={onToggle}
          onOpen={({ id }) => navigate({ to: "/runs/$id", params: { id } })}
          onCompare={compare}
          actions={actions}
        />
      ) : first.data && (!search.group || groups) ? (
        <Nothing filtered={isFiltered(search)} onClear={() => change(CLEARED)} />
      ) : (
        error === null && <Skeleton lines={10} />
      )}
      {leftOut > 0 && search.group && (
        <p className="text-quiet">
          {leftOut} more groups are not shown: filter, or group by something else.
        </p>
      )}
      {choosing && (
        <ColumnPicker
          chosen={columns.map(({ id }) => id)}
          parameters={first.data?.parameters ?? []}
          metrics={first.data?.metrics ?? []}
          onChange={(next) => change({ columns: next })}
          onClose={() => setChoosing(false)}
        />
      )}
    </Page>
  );
}

const CLEARED: Partial<RunsSearch> = {
  q: undefined,
  state: undefined,
  type: undefined,
  tag: undefined,
  archived: undefined,
};

function describeTotal(total: number, search: RunsSearch, unmeasured: number): string {
  const count = total.toLocaleString("en-US");
  const known = isFiltered(search)
    ? `${count} match${total === 1 ? "es" : ""}`
    : `${count} execution${total === 1 ? "" : "s"} and pipeline runs`;
  return unmeasured
    ? `${known} · reading the metrics of ${unmeasured.toLocaleString("en-US")} more`
    : known;
}

/** The chosen columns; else those that say most of the first rows, which then stay. */
function useShownColumns(search: RunsSearch, page: Schemas["ActivityPage"] | undefined) {
  const chosen = useRef<string[]>(undefined);
  const activities = page?.activities ?? [];
  const usual = chosen.current ?? defaultColumns(activities);
  if (activities.length && !page?.unmeasured) chosen.current = usual;
  const ids = search.columns ?? usual;
  const key = JSON.stringify(ids);
  return useMemo(
    () => (JSON.parse(key) as string[]).map(findColumn).filter((column) => column !== undefined),
    [key],
  );
}

function Nothing({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  return filtered ? (
    <EmptyState
      title="Nothing matches these filters"
      action={<Button onClick={onClear}>Clear filters</Button>}
    />
  ) : (
    <EmptyState title="Nothing has run yet" command="clew exec -- python3 train.py">
      Every command that you run with Clew, and every run of a pipeline, appears here with its
      parameters and metrics.
    </EmptyState>
  );
}
