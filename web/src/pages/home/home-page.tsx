import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type LucideIcon, NotebookPen, Play, Upload, Waypoints } from "lucide-react";
import { api, type Schemas, unwrap } from "@/api/client";
import { ButtonLink } from "@/components/button";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Page, Section } from "@/components/page";
import { useBackend } from "@/pages/workloads/api/queries";
import { NamespaceSelect } from "@/pages/workloads/common/namespace";
import { ActivityList } from "./activity-list";
import { FirstSteps } from "./first-steps";
import { QuotaUse } from "./quota-use";
import { StorageUse } from "./storage-use";
import { WorkloadList } from "./workload-list";

const route = getRouteApi("/");

type Overview = Schemas["Overview"];

/** The first page: what runs, what failed and why, and the latest results. */
export function HomePage() {
  const { namespace } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: backend } = useBackend();
  const overview = useQuery({
    queryKey: ["overview", namespace],
    queryFn: () => unwrap(api.GET("/api/v1/overview", { params: { query: { namespace } } })),
  });
  return (
    <Page title="Home" actions={<QuickActions />}>
      {backend && (
        <NamespaceSelect
          backend={backend}
          chosen={namespace}
          all={false}
          onChoose={(next) => navigate({ search: { namespace: next } })}
        />
      )}
      {overview.isPending && <Skeleton lines={8} />}
      {overview.error && <ErrorCard error={overview.error} retry={overview.refetch} />}
      {overview.data && (isEmpty(overview.data) ? <Start /> : <Summary overview={overview.data} />)}
    </Page>
  );
}

function isEmpty({ counts, workloads }: Overview): boolean {
  return counts.executions + counts.runs === 0 && workloads.length === 0;
}

const ACTIONS: [string, LucideIcon, string, Record<string, string>][] = [
  ["New notebook", NotebookPen, "/notebooks/new", {}],
  ["Run a pipeline", Play, "/pipelines", {}],
  ["Upload a pipeline", Upload, "/pipelines", { upload: "new" }],
  ["Search lineage", Waypoints, "/lineage", {}],
];

function QuickActions() {
  return ACTIONS.map(([label, Icon, to, search]) => (
    <ButtonLink key={label} to={to as "/"} search={search}>
      <Icon size={15} aria-hidden /> {label}
    </ButtonLink>
  ));
}

function Start() {
  return (
    <Section title="First steps">
      <p className="mb-4 max-w-prose">
        Nothing is recorded in this project yet. Clew records what a command reads and writes, so
        that you can ask later where a result came from, and make it again. This page shows your
        work as soon as there is some.
      </p>
      <FirstSteps />
    </Section>
  );
}

function Summary({ overview }: { overview: Overview }) {
  const { running, failed, recent, workloads, counts } = overview;
  return (
    <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-[minmax(0,2fr)_minmax(17rem,1fr)]">
      <div className="flex min-w-0 flex-col gap-4">
        <Section
          title="Running now"
          actions={<More state={["running", "pending"]} count={counts.running} />}
        >
          <ActivityList activities={running} empty="No command and no pipeline is running." />
        </Section>
        {workloads.length > 0 && (
          <Section title="Notebooks and TensorBoards">
            <WorkloadList workloads={workloads} />
          </Section>
        )}
        <Section
          title="Failed in the last 7 days"
          actions={<More state={["failed", "broken"]} count={counts.failed} />}
        >
          <ActivityList activities={failed} empty="Nothing failed." />
        </Section>
        <Section title="Recent results" actions={<More count={counts.executions + counts.runs} />}>
          <ActivityList activities={recent} empty="Nothing has ended well yet." />
        </Section>
      </div>
      <div className="flex min-w-0 flex-col gap-4">
        <StorageUse {...overview.storage} />
        {overview.quota && <QuotaUse quota={overview.quota} />}
        <Section title="Commands to know">
          <FirstSteps />
        </Section>
      </div>
    </div>
  );
}

/** A link to all of them in the table of runs. */
function More({ state, count }: { state?: Schemas["Activity"]["state"][]; count: number }) {
  if (count === 0) return null;
  return (
    <ButtonLink to="/runs" search={{ state }} look="quiet">
      Show all {count}
    </ButtonLink>
  );
}
