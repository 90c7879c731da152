import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { fetchJson, type Schemas } from "@/api/client";
import { type Column, DataTable } from "@/components/data-table";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { ValueTable } from "../artifacts/value-table";
import type { Task } from "./task-graph";
import type { Run } from "./use-run";

type Fact = Schemas["Fact"];

/** Why a task ran or was reused, and what must stay as it is for a later reuse. */
export function WhyTab({ run, task }: { run: Run; task: Task }) {
  const path = `/api/v1/tasks/${run.uid}/${task.name.split("/").map(encodeURIComponent).join("/")}/why`;
  const why = useQuery({
    queryKey: ["runs", "why", run.uid, task.name, task.state],
    queryFn: () => fetchJson<Schemas["Why"]>(path),
  });
  const facts = useMemo(
    () => (why.data?.facts ?? []).map((fact, number) => ({ ...fact, number })),
    [why.data],
  );
  if (why.error) return <ErrorCard error={why.error} />;
  if (!why.data) return <Skeleton />;
  const { reused_from: from, parts } = why.data;
  return (
    <div className="flex min-w-0 flex-col gap-4">
      <p>
        {from ? (
          <>
            It was not run: its result is that of{" "}
            <Link
              to="/runs/$id"
              params={{ id: from.split("/", 1)[0] ?? from }}
              search={{ task: from.slice(from.indexOf("/") + 1) }}
              className="text-accent underline"
            >
              {from}
            </Link>
            , because everything that it depended on is unchanged.
          </>
        ) : why.data.why ? (
          `It ran because ${why.data.why}.`
        ) : (
          "The record does not say."
        )}
      </p>
      {Object.keys(parts).length > 0 && (
        <section>
          <h3 className="mb-1 font-semibold">What identifies it</h3>
          <ValueTable label="What identifies it" values={parts as Record<string, unknown>} />
        </section>
      )}
      {facts.length > 0 && (
        <section className="min-w-0">
          <h3 className="mb-1 font-semibold">
            {facts.length.toLocaleString("en")} things that it depended on
          </h3>
          <p className="mb-2 text-quiet">
            A later run reuses the result if all of them are still the same.
          </p>
          <DataTable
            label="Dependencies"
            columns={COLUMNS}
            rows={facts}
            rowKey={(fact) => String(fact.number)}
          />
        </section>
      )}
    </div>
  );
}

const COLUMNS: Column<Fact & { number: number }>[] = [
  { id: "kind", header: "What", width: "7rem", cell: (fact) => fact.kind },
  {
    id: "path",
    header: "Path",
    width: "minmax(14rem, 1fr)",
    cell: (fact) => (
      <span title={fact.path} className="font-mono text-[0.93rem]">
        {fact.path}
      </span>
    ),
  },
  {
    id: "answer",
    header: "Found",
    width: "minmax(8rem, 14rem)",
    cell: (fact) => (
      <span title={fact.answer} className="font-mono text-[0.93rem]">
        {fact.answer}
      </span>
    ),
  },
];
