import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, unwrap } from "@/api/client";
import { ButtonLink } from "@/components/button";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Time } from "@/components/format/time";
import { Section } from "@/components/page";
import { ArtifactCard } from "../artifacts/artifact-card";
import { ValueTable } from "../artifacts/value-table";
import { Notes } from "../remarks/notes";
import { useRunSearch } from "../use-search";
import { type Run, useTemplate } from "./use-run";

const SHOWN = 30;

/** What all tasks made; one at a time is loaded. */
export function Artifacts({ run }: { run: Run }) {
  const [search, setSearch] = useRunSearch();
  const all = run.tasks.flatMap((task) =>
    Object.entries(task.artifacts).flatMap(([name, several]) =>
      several.map((artifact, at) => ({
        id: `${task.name}:${name}${several.length > 1 ? `/${at}` : ""}`,
        name,
        task,
        artifact,
      })),
    ),
  );
  if (!all.length) return <EmptyState title="It has made no artifacts" />;
  const selected = all.find(({ id }) => id === search.file) ?? all[0];
  return (
    <div className="grid min-w-0 items-start gap-4 lg:grid-cols-[18rem_1fr]">
      <ul className="flex max-h-[70vh] min-w-0 flex-col gap-1 overflow-auto" aria-label="Artifacts">
        {all.map(({ id, task, artifact }) => (
          <li key={id}>
            <button
              type="button"
              aria-current={id === selected?.id}
              className={`flex w-full flex-col rounded-md border px-3 py-1.5 text-left ${id === selected?.id ? "border-accent bg-accent-soft" : "border-line bg-surface hover:bg-sunken"}`}
              onClick={() => setSearch({ file: id })}
            >
              <span className="w-full truncate font-medium">{id.slice(task.name.length + 1)}</span>
              <span className="w-full truncate text-quiet">
                {task.name} · {artifact.type.replace("system.", "")}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {selected && (
        <ArtifactCard key={selected.id} name={selected.name} artifact={selected.artifact} />
      )}
    </div>
  );
}

/** Numeric outputs and metrics, by task. */
export function Metrics({ run }: { run: Run }) {
  const metrics = useQuery({
    queryKey: ["runs", "metrics", run.uid, run.tasks.length, run.state],
    queryFn: () =>
      unwrap(api.GET("/api/v1/runs/{id}/metrics", { params: { path: { id: run.uid } } })),
  });
  if (metrics.error) return <ErrorCard error={metrics.error} />;
  if (!metrics.data) return <Skeleton />;
  if (!metrics.data.metrics.length)
    return (
      <EmptyState title="No metrics">
        Numeric outputs and artifacts of the type Metrics appear here:{" "}
        <code className="font-mono">metrics.log_metric("accuracy", 0.9)</code>
      </EmptyState>
    );
  return (
    <div className="grid min-w-0 items-start gap-4 lg:grid-cols-2">
      {metrics.data.metrics.slice(0, SHOWN).map(({ task, values }) => (
        <Section
          key={task}
          title={task.slice(task.indexOf("/") + 1)}
          actions={
            <ButtonLink look="quiet" to="/lineage" search={{ target: task, direction: "up" }}>
              Where they came from
            </ButtonLink>
          }
        >
          <ValueTable label={`Metrics of ${task}`} values={values as Record<string, unknown>} />
        </Section>
      ))}
      {metrics.data.metrics.length > SHOWN && (
        <p className="text-quiet">
          and {metrics.data.metrics.length - SHOWN} more tasks; select a task to see its outputs
        </p>
      )}
    </div>
  );
}

export function Details({ run }: { run: Run }) {
  const template = useTemplate(run.uid);
  const target = run.id ?? run.uid;
  const notes = useQuery({
    queryKey: ["runs", "notes", target],
    queryFn: () => unwrap(api.GET("/api/v1/notes", { params: { query: { target } } })),
  });
  const inputs = run.inputs as Record<string, unknown>;
  const outputs = run.outputs as Record<string, unknown>;
  return (
    <div className="grid min-w-0 items-start gap-4 xl:grid-cols-2">
      <Section title="Inputs">
        {Object.keys(inputs).length ? (
          <ValueTable label="Inputs" values={inputs} />
        ) : (
          <p className="text-quiet">None.</p>
        )}
      </Section>
      <Section title="Outputs">
        {Object.keys(outputs).length ? (
          <ValueTable label="Outputs" values={outputs} />
        ) : (
          <p className="text-quiet">None.</p>
        )}
      </Section>
      <Section title="About the run">
        <ValueTable
          label="About the run"
          values={{
            uid: run.uid,
            ...(run.file && { file: run.file }),
            ...(template.data?.description && { description: template.data.description }),
            reuse: template.data
              ? template.data.reuse
                ? "earlier results are reused"
                : "every task runs"
              : "–",
          }}
        />
        <p className="mt-2 text-quiet">
          Requested <Time at={run.created} />, started <Time at={run.started} />, ended{" "}
          <Time at={run.ended} />
        </p>
        {template.data?.pipeline && (
          <Link
            to="/pipelines/$id"
            params={{ id: template.data.pipeline }}
            className="text-accent underline"
          >
            The pipeline
          </Link>
        )}
      </Section>
      <Notes target={target} notes={notes.data?.notes ?? []} />
      {template.data && template.data.warnings.length > 0 && (
        <Section title="How it differs from a run on a cluster">
          <ul className="list-disc pl-5">
            {template.data.warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </Section>
      )}
    </div>
  );
}
