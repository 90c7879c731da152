import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense } from "react";
import { ApiError } from "@/api/client";
import { ButtonLink } from "@/components/button";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Page } from "@/components/page";
import { Tabs } from "@/components/tabs";
import type { Workload } from "../api/documents";
import { workloadQuery } from "../api/queries";
import type { Openable } from "../common/open-path";
import { Phase } from "../common/phase";
import { Conditions } from "./conditions";
import type { DetailTab } from "./detail-tabs";
import { EventList } from "./event-list";
import { Logs } from "./logs";

const YamlEditor = lazy(() => import("./yaml-editor"));
const WORDS = { notebooks: "notebook", tensorboards: "TensorBoard", volumes: "volume" };

/** Everything about one notebook, TensorBoard or volume. */
export function DetailsPage({
  collection,
  namespace,
  name,
  tab = "overview",
  container,
  banner,
  actions,
  overview,
}: {
  collection: Openable;
  namespace: string;
  name: string;
  tab?: DetailTab;
  /** The container whose log is shown. */
  container?: string;
  banner?: ReactNode;
  actions: (workload: Workload) => ReactNode;
  overview: (workload: Workload) => ReactNode;
}) {
  const navigate = useNavigate();
  const { data, error, refetch } = useQuery(workloadQuery(collection, namespace, name));
  const params = { namespace, name };
  const to = `/${collection}/$namespace/$name` as const;
  if (error) {
    const gone = error instanceof ApiError && error.status === 404;
    return (
      <Page title={name}>
        {gone ? (
          <EmptyState
            title={`There is no ${WORDS[collection]} ${name}`}
            action={<ButtonLink to={`/${collection}`}>Show all</ButtonLink>}
          >
            It may have been deleted.
          </EmptyState>
        ) : (
          <ErrorCard error={error} retry={() => refetch()} />
        )}
      </Page>
    );
  }
  if (!data) {
    return (
      <Page title={name}>
        <Skeleton />
      </Page>
    );
  }
  return (
    <Page
      title={name}
      subtitle={
        <div className="pt-1">
          <Phase status={{ ...data, state: "" }} collection={collection} wrap />
        </div>
      }
      actions={actions(data)}
    >
      {banner}
      <Tabs
        label={`About ${name}`}
        selected={tab}
        onSelect={(id) => navigate({ to, params, search: { tab: id as DetailTab }, replace: true })}
        tabs={[
          { id: "overview", label: "Overview", content: overview(data) },
          {
            id: "events",
            label: data.events.length ? `Events (${data.events.length})` : "Events",
            content: <EventList events={data.events} />,
          },
          ...(collection === "volumes"
            ? []
            : [
                {
                  id: "logs",
                  label: "Logs",
                  content: (
                    <Logs
                      workload={data}
                      collection={collection}
                      container={container}
                      onContainer={(next) =>
                        navigate({
                          to,
                          params,
                          search: { tab: "logs", container: next },
                          replace: true,
                        })
                      }
                    />
                  ),
                },
              ]),
          {
            id: "conditions",
            label: "Conditions",
            content: <Conditions conditions={data.conditions} />,
          },
          {
            id: "advanced",
            label: "Advanced",
            content: (
              <Suspense fallback={<Skeleton />}>
                <YamlEditor workload={data} collection={collection} />
              </Suspense>
            ),
          },
        ]}
      />
    </Page>
  );
}
