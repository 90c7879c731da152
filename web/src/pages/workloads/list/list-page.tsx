import { Plus } from "lucide-react";
import { type ReactNode, useMemo } from "react";
import { ButtonLink } from "@/components/button";
import { type Column, DataTable } from "@/components/data-table";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { FilterInput } from "@/components/fields/filter-input";
import { Page } from "@/components/page";
import type { BackendInfo } from "../api/documents";
import { useBackend } from "../api/queries";
import { currentNamespace, NamespaceSelect } from "../common/namespace";
import { NoBackend, NoFeature } from "../common/no-backend";
import { arrange, type ListSearch, type SortKeys, sortOf } from "./search";
import { useNarrow } from "./use-narrow";

export interface ListOptions<Row> {
  title: string;
  /** As in a sentence: `notebook`, `notebooks`. */
  thing: string;
  things: string;
  createLabel: string;
  createTo: "/notebooks/new" | "/tensorboards/new" | "/volumes/new";
  columns: Column<Row>[];
  keys: SortKeys<Row>;
  text: (row: Row) => string;
  empty: ReactNode;
  /** A command that creates the first one. */
  command: (namespace: string) => string;
  banner?: (backend: BackendInfo) => ReactNode;
  onOpen: (row: Row) => void;
}

/** The page of a list, once the back end is known. */
export function WithBackend({
  title,
  feature,
  children,
}: {
  title: string;
  /** What the page needs. */
  feature?: "notebooks" | "tensorboards" | "volumes";
  children: (backend: BackendInfo) => ReactNode;
}) {
  const { data, error, refetch } = useBackend();
  if (error && !data) {
    return (
      <Page title={title}>
        <ErrorCard error={error} retry={() => refetch()} />
      </Page>
    );
  }
  if (!data) {
    return (
      <Page title={title}>
        <Skeleton />
      </Page>
    );
  }
  if (data.kind === "none") {
    return (
      <Page title={title}>
        <NoBackend />
      </Page>
    );
  }
  if (feature && !data.features[feature]) {
    return (
      <Page title={title}>
        <NoFeature />
      </Page>
    );
  }
  return children(data);
}

export function ListPage<Row extends { name: string; namespace: string }>({
  backend,
  options,
  search,
  onSearch,
  data,
  error,
  refetch,
}: {
  backend: BackendInfo;
  options: ListOptions<Row>;
  search: ListSearch;
  onSearch: (part: Partial<ListSearch>) => void;
  data: Row[] | undefined;
  error: unknown;
  refetch: () => void;
}) {
  const sort = sortOf(search, "name");
  const { keys, text } = options;
  const rows = useMemo(
    () =>
      arrange(
        data ?? [],
        {
          filter: search.filter,
          sort: sortOf({ sort: search.sort, descending: search.descending }, "name"),
        },
        { keys, text },
      ),
    [data, search.filter, search.sort, search.descending, keys, text],
  );
  const many = new Set(data?.map(({ namespace }) => namespace)).size > 1;
  const narrow = useNarrow();
  const columns = useMemo(() => {
    const shown = options.columns.filter(({ id }) => id !== "namespace" || many);
    return narrow ? forNarrow(shown) : shown;
  }, [options.columns, many, narrow]);
  return (
    <Page
      title={options.title}
      actions={
        <>
          <NamespaceSelect
            backend={backend}
            chosen={search.namespace}
            onChoose={(namespace) => onSearch({ namespace })}
          />
          <ButtonLink look="primary" to={options.createTo} search={{ namespace: search.namespace }}>
            <Plus size={16} aria-hidden /> {options.createLabel}
          </ButtonLink>
        </>
      }
    >
      {options.banner?.(backend)}
      {error && !data ? (
        <ErrorCard error={error} retry={refetch} />
      ) : !data ? (
        <Skeleton />
      ) : data.length === 0 ? (
        <EmptyState
          title={`There are no ${options.things} yet`}
          command={options.command(currentNamespace(backend, search.namespace))}
        >
          {options.empty}
        </EmptyState>
      ) : (
        <>
          <div className="flex flex-wrap items-center gap-3">
            <FilterInput
              label={`Filter ${options.things}`}
              className="max-w-sm"
              value={search.filter}
              onChange={(filter) => onSearch({ filter })}
            />
            <span role="status" className="text-quiet">
              {rows.length === data.length ? "" : `${rows.length} of `}
              {data.length} {data.length === 1 ? options.thing : options.things}
            </span>
          </div>
          <DataTable
            label={options.title}
            columns={columns}
            rows={rows}
            rowKey={(row) => `${row.namespace}/${row.name}`}
            sort={sort}
            onSort={(next) =>
              onSearch({ sort: next.column, descending: next.descending || undefined })
            }
            onOpen={options.onOpen}
          />
        </>
      )}
    </Page>
  );
}

/** What fits a narrow window, in this order; the other columns follow to the right. */
const NARROW_WIDTHS = { name: "minmax(7.5rem, 1fr)", state: "7.5rem", actions: "9.6rem" };

function forNarrow<Row>(columns: Column<Row>[]): Column<Row>[] {
  const first = Object.entries(NARROW_WIDTHS).flatMap(([name, width]) =>
    columns.filter(({ id }) => id === name).map((column) => ({ ...column, width })),
  );
  return [...first, ...columns.filter(({ id }) => !(id in NARROW_WIDTHS))];
}
