import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { ButtonLink } from "@/components/button";
import { CopyLink } from "@/components/copy-link";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Checkbox } from "@/components/fields/field";
import { FilterInput } from "@/components/fields/filter-input";
import { Page } from "@/components/page";
import { Tabs } from "@/components/tabs";
import { ContentDiff } from "./diff/content-diff";
import { Differences } from "./diff/differences";
import { EnvironmentDiff } from "./diff/environment-diff";
import { EntryList } from "./entry-list";
import { distinguish } from "./entry-names";
import { MetricPlots } from "./plots/metric-plots";
import { ParallelTab } from "./plots/parallel-tab";
import { ScatterTab } from "./plots/scatter-tab";
import type { CompareSearch, TabId } from "./search";

const ACTIVE_MILLISECONDS = 5000;

/** Two to ten executions and pipeline runs side by side. The URL has the whole view. */
export function ComparePage() {
  const search = useSearch({ from: "/compare" });
  const navigate = useNavigate({ from: "/compare" });
  const ids = search.id ?? [];
  const { data, error, refetch } = useQuery({
    queryKey: ["activities", "comparison", ids],
    queryFn: async () => {
      const found = await unwrap(api.GET("/api/v1/comparison", { params: { query: { id: ids } } }));
      return found as Schemas["ActivityComparison"]; // the client forgets that points are pairs
    },
    enabled: ids.length >= 2,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.entries.some((entry) => entry.state === "running") ? ACTIVE_MILLISECONDS : false,
  });
  const comparison = useMemo(() => data && { ...data, entries: distinguish(data.entries) }, [data]);
  const change = (changed: Partial<CompareSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...changed }), replace: true });
  if (ids.length < 2) {
    return (
      <Page title="Compare">
        <EmptyState
          title="Choose what to compare"
          action={
            <ButtonLink to="/runs" look="primary">
              Go to Runs
            </ButtonLink>
          }
        >
          Select two to ten rows of Runs with <kbd>x</kbd>, and press <kbd>c</kbd>.
        </EmptyState>
      </Page>
    );
  }
  const chosen = data?.entries.findIndex(({ id }) => id === search.baseline) ?? -1;
  const baseline = Math.max(0, chosen);
  const props = { search, baseline, onChange: change };
  return (
    <Page
      title="Compare"
      subtitle={`${ids.length} executions and pipeline runs`}
      actions={<CopyLink />}
    >
      {error && <ErrorCard error={error} retry={refetch} />}
      {!data || !comparison ? (
        !error && <Skeleton lines={10} />
      ) : (
        <>
          <EntryList
            entries={data.entries}
            baseline={baseline}
            onBaseline={(id) => change({ baseline: id })}
            onRemove={
              ids.length > 2
                ? (id) =>
                    change({ id: data.entries.map((one) => one.id).filter((one) => one !== id) })
                : null
            }
          />
          <Tabs
            label="Comparison"
            selected={search.tab ?? "differences"}
            onSelect={(tab) => change({ tab: tab === "differences" ? undefined : (tab as TabId) })}
            tabs={[
              {
                id: "differences",
                label: "Differences",
                content: (
                  <div className="flex flex-col gap-4">
                    <div className="flex flex-wrap items-center gap-4">
                      <NameFilter search={search} onChange={change} />
                      <Checkbox
                        label="Show also what is equal"
                        checked={search.all ?? false}
                        onChange={({ target }) => change({ all: target.checked || undefined })}
                      />
                    </div>
                    <Differences
                      comparison={comparison}
                      baseline={baseline}
                      all={search.all ?? false}
                      query={search.q ?? ""}
                    />
                  </div>
                ),
              },
              {
                id: "metrics",
                label: "Metrics",
                content: (
                  <div className="flex flex-col gap-4">
                    <NameFilter search={search} onChange={change} />
                    <MetricPlots comparison={comparison} {...props} />
                  </div>
                ),
              },
              {
                id: "parallel",
                label: "Parallel coordinates",
                content: <ParallelTab comparison={comparison} {...props} />,
              },
              {
                id: "scatter",
                label: "Scatter",
                content: <ScatterTab comparison={comparison} {...props} />,
              },
              {
                id: "code",
                label: "Code",
                content: <ContentDiff comparison={comparison} {...props} />,
              },
              {
                id: "environment",
                label: "Environment",
                content: <EnvironmentDiff comparison={comparison} {...props} />,
              },
            ]}
          />
        </>
      )}
    </Page>
  );
}

function NameFilter({
  search,
  onChange,
}: {
  search: CompareSearch;
  onChange: (change: Partial<CompareSearch>) => void;
}) {
  return (
    <FilterInput
      label="Filter by name"
      className="w-full max-w-72"
      value={search.q}
      onChange={(q) => onChange({ q })}
    />
  );
}
