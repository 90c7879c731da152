import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { parseSort, type RunsSearch, toFilter } from "./search";
import { sortGroups } from "./table/group-order";
import { PAGE_SIZE, type PageOfSection, RowLayout, type Section } from "./table/sections";

export type Activity = Schemas["Activity"];
export type ActivityGroup = Schemas["ActivityGroup"];

const UNMEASURED_MILLISECONDS = 1000;
/** A killed command changes nothing in the record, so what runs is looked at now and then. */
const ACTIVE_MILLISECONDS = 5000;
const MOST_GROUP_METRICS = 20;

function isActive({ state }: Activity): boolean {
  return state === "running" || state === "pending";
}

function pageQuery(search: RunsSearch, group: string | null | undefined, page: number) {
  const query = {
    ...toFilter(search),
    ...parseSort(search),
    ...(group === undefined ? {} : { by: search.group, group: group ?? undefined }),
    limit: PAGE_SIZE,
    offset: page * PAGE_SIZE,
  };
  return {
    queryKey: ["activities", "page", query],
    queryFn: () => unwrap(api.GET("/api/v1/activities", { params: { query } })),
    refetchInterval: (state: { state: { data?: Schemas["ActivityPage"] } }) => {
      const data = state.state.data;
      if (data?.unmeasured) return UNMEASURED_MILLISECONDS;
      return data?.activities.some(isActive) ? ACTIVE_MILLISECONDS : false;
    },
  };
}

/** How many there are, and all names of parameters and metrics: the first page has both. */
export function useFirstPage(search: RunsSearch) {
  return useQuery({ ...pageQuery(search, undefined, 0), placeholderData: keepPreviousData });
}

export function useGroups(search: RunsSearch, columns: string[]) {
  const metric = columns
    .filter((column) => column.startsWith("metrics."))
    .map((column) => column.slice("metrics.".length))
    .slice(0, MOST_GROUP_METRICS);
  const query = { ...toFilter(search), into: search.group ?? "", metric };
  const found = useQuery({
    queryKey: ["activities", "groups", query],
    queryFn: () => unwrap(api.GET("/api/v1/activities/groups", { params: { query } })),
    enabled: Boolean(search.group),
    placeholderData: keepPreviousData,
  });
  const { sort, order } = parseSort(search);
  const sorted = useMemo(
    () => found.data && sortGroups(found.data.groups, { sort, order }),
    [found.data, sort, order],
  );
  return { groups: sorted, leftOut: found.data?.left_out ?? 0, error: found.error };
}

export function useRowLayout(
  search: RunsSearch,
  total: number | null | undefined,
  groups: ActivityGroup[] | undefined,
): RowLayout {
  return useMemo(() => {
    if (!search.group) return new RowLayout([{ total: total ?? 0, open: true }]);
    const open = new Set(search.open);
    const sections: Section[] = (groups ?? []).map((group) => ({
      group: group.key,
      total: group.total,
      open: open.has(group.key),
    }));
    return new RowLayout(sections);
  }, [search.group, search.open, total, groups]);
}

/** The rows of these pages, by section and index. While others come, those of before are shown. */
export function useRows(
  search: RunsSearch,
  layout: RowLayout,
  pages: PageOfSection[],
): (section: number, index: number) => Activity | undefined {
  const known = useRef(new Map<string, Activity[]>());
  return useQueries({
    queries: pages.map(({ section, page }) =>
      pageQuery(search, layout.sections[section]?.group, page),
    ),
    combine: (results) => {
      const before = known.current;
      const loaded = new Map<string, Activity[]>();
      results.forEach(({ data }, at) => {
        const { section, page } = pages[at] as PageOfSection;
        const id = `${JSON.stringify(layout.sections[section]?.group)} ${page}`;
        const rows = data?.activities ?? before.get(id);
        if (rows) loaded.set(id, rows);
      });
      known.current = loaded;
      return (section: number, index: number) => {
        const page = Math.floor(index / PAGE_SIZE);
        const id = `${JSON.stringify(layout.sections[section]?.group)} ${page}`;
        return loaded.get(id)?.[index % PAGE_SIZE];
      };
    },
  });
}
