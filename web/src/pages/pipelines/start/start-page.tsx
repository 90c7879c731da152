import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Field, Select } from "@/components/fields/field";
import { Page, Section } from "@/components/page";
import { pipelineQuery, pipelinesQuery, runTemplateQuery, versionQuery } from "../api";
import { ProblemCard, Warnings } from "../problem";
import { StartForm } from "./start-form";

const route = getRouteApi("/pipelines/start");
const NEWEST = "";

/** Start a run or a schedule: of a pipeline that is chosen here, or like an earlier run. */
export function StartPage() {
  const { from, when } = route.useSearch();
  const title = from
    ? `Start a run like ${from}`
    : when === "schedule"
      ? "New schedule"
      : "Start a run";
  return (
    <Page title={title}>
      <div className="flex max-w-4xl flex-col gap-4">
        {from ? <LikeRun id={from} /> : <OfPipeline />}
      </div>
    </Page>
  );
}

function LikeRun({ id }: { id: string }) {
  const { data, error, refetch } = useQuery(runTemplateQuery(id));
  if (!data) {
    return error ? <ErrorCard error={error} retry={refetch} /> : <Skeleton lines={8} />;
  }
  return (
    <>
      <p>
        With the pipeline and the values of{" "}
        <Link to="/runs/$id" params={{ id }} className="text-accent underline">
          {data.name || id}
        </Link>
        . Tasks whose inputs are the same are reused.
      </p>
      {data.problem && <ProblemCard problem={data.problem} />}
      <Warnings texts={data.warnings} />
      <StartForm
        key={id}
        spec={data.spec}
        source={
          data.pipeline && data.version
            ? { pipeline: data.pipeline, version: data.version }
            : { spec: [data.spec, data.platform].filter(Boolean).map(toJson).join("\n---\n") }
        }
        given={data}
      />
    </>
  );
}

function toJson(value: unknown): string {
  return JSON.stringify(value);
}

function OfPipeline() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const change = (changes: Partial<typeof search>) =>
    navigate({ to: "/pipelines/start", search: { ...search, ...changes }, replace: true });
  const all = useQuery(pipelinesQuery());
  const chosen = useQuery({ ...pipelineQuery(search.pipeline ?? ""), enabled: !!search.pipeline });
  const version = search.version ?? chosen.data?.latest?.id;
  const compiled = useQuery({
    ...versionQuery(search.pipeline ?? "", version ?? ""),
    enabled: !!search.pipeline && version !== undefined,
  });
  const error = all.error ?? chosen.error ?? compiled.error;
  if (all.data && !all.data.pipelines.length)
    return (
      <EmptyState title="There are no pipelines yet" command="clew pipeline run pipeline.py">
        <Link to="/pipelines" search={{ upload: "new" }} className="text-accent underline">
          Upload one
        </Link>
        , or run one with the command line.
      </EmptyState>
    );
  return (
    <>
      <Section title="Pipeline">
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Pipeline">
            <Select
              value={search.pipeline ?? ""}
              onChange={(event) =>
                change({ pipeline: event.target.value || undefined, version: undefined })
              }
            >
              <option value="">Choose a pipeline</option>
              {all.data?.pipelines.map((one) => (
                <option key={one.id} value={one.id}>
                  {one.display_name}
                </option>
              ))}
            </Select>
          </Field>
          <Field
            label="Version"
            hint={
              search.when === "schedule" && !search.version
                ? "Each run uses the version that is the newest then."
                : undefined
            }
          >
            <Select
              value={search.version ?? NEWEST}
              disabled={!chosen.data}
              onChange={(event) => change({ version: event.target.value || undefined })}
            >
              <option value={NEWEST}>
                {chosen.data?.latest
                  ? `The newest: ${chosen.data.latest.display_name}`
                  : "The newest"}
              </option>
              {chosen.data?.all_versions.map((one) => (
                <option key={one.id} value={one.id}>
                  {one.display_name}
                </option>
              ))}
            </Select>
          </Field>
        </div>
      </Section>
      {error && <ErrorCard error={error} />}
      {compiled.data?.problem && <ProblemCard problem={compiled.data.problem} />}
      {compiled.data && search.pipeline ? (
        <>
          <Warnings texts={compiled.data.warnings} />
          <StartForm
            key={`${search.pipeline} ${version}`}
            spec={compiled.data.spec}
            source={{ pipeline: search.pipeline, version: search.version }}
          />
        </>
      ) : (
        search.pipeline && !error && <Skeleton lines={6} />
      )}
    </>
  );
}
