import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { api } from "@/api/client";
import { Button } from "@/components/button";
import { count } from "@/components/count";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Section } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { Time } from "@/components/time";
import { TextBlock } from "../artifacts/text-block";
import { useRunSearch } from "../use-search";
import { isActive, type RepeatRequest, useRepeat, useRepeats } from "./use-repeats";
import { type Result, Verdict } from "./verdict";

/** The repeats of an execution or run on the server, and one of them in detail. */
export function RepeatsTab({
  uid,
  command,
  children,
}: {
  uid: string;
  command: string;
  /** What is known of other repeats. */
  children?: ReactNode;
}) {
  const [search, setSearch] = useRunSearch();
  const repeats = useRepeats(uid);
  if (repeats.error) return <ErrorCard error={repeats.error} retry={() => repeats.refetch()} />;
  if (!repeats.data) return <Skeleton />;
  const selected = search.repeat ?? repeats.data[0]?.id;
  if (!selected) {
    return (
      <div className="flex min-w-0 flex-col gap-4">
        <EmptyState title="It has not been repeated in the app" command={command}>
          A repeat runs the command again with exactly what it had, and says whether the results are
          the same. Press Repeat, or use the command line.
        </EmptyState>
        {children}
      </div>
    );
  }
  return (
    <div className="grid min-w-0 items-start gap-4 lg:grid-cols-[18rem_1fr]">
      <ul className="flex min-w-0 flex-col gap-1" aria-label="Repeats">
        {repeats.data.map((repeat) => (
          <li key={repeat.id}>
            <button
              type="button"
              aria-current={repeat.id === selected}
              className={`flex w-full flex-wrap items-center gap-2 rounded-md border px-3 py-2 text-left ${repeat.id === selected ? "border-accent bg-accent-soft" : "border-line bg-surface hover:bg-sunken"}`}
              onClick={() => setSearch({ repeat: repeat.id })}
            >
              <StateBadge state={repeat.verdict ?? repeat.state} />
              <Time at={repeat.created} />
              {describeOptions(repeat) && (
                <span className="w-full truncate text-quiet">{describeOptions(repeat)}</span>
              )}
            </button>
          </li>
        ))}
      </ul>
      <RepeatView id={selected} />
    </div>
  );
}

function describeOptions({ options }: { options: RepeatRequest["options"] }): string {
  const parameters = Object.entries(options.parameters as Record<string, string>);
  return [
    ...parameters.map(([position, word]) => `word ${position}: ${word}`),
    options.incremental && "incremental",
    options.network && "with network",
    options.gpu && "with GPUs",
  ]
    .filter(Boolean)
    .join(", ");
}

function RepeatView({ id }: { id: string }) {
  const repeat = useRepeat(id);
  const client = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  if (repeat.error) return <ErrorCard error={repeat.error} retry={() => repeat.refetch()} />;
  if (!repeat.data) return <Skeleton />;
  const { state, output, result, run_result: runResult } = repeat.data;
  const active = isActive(repeat.data);
  async function cancel() {
    setError(null);
    try {
      await api.POST("/api/v1/repeats/{id}/cancel", { params: { path: { id } } });
      client.invalidateQueries({ queryKey: ["repeats"] });
    } catch (failure) {
      setError(failure);
    }
  }
  return (
    <Section
      title={active ? `Repeat, ${state}` : "Repeat"}
      actions={active && <Button onClick={cancel}>Cancel the repeat</Button>}
    >
      <div className="flex min-w-0 flex-col gap-4" aria-live="polite">
        {error !== null && <ErrorCard error={error} />}
        {state === "queued" && <p>It waits until the server has room for it.</p>}
        {state === "canceled" && <p>It was canceled. Nothing of it is kept.</p>}
        {repeat.data.error && <ErrorCard error={new Error(repeat.data.error)} />}
        {result && <Verdict result={result} />}
        {runResult && <RunVerdict result={runResult} />}
        {output ? (
          <Output text={output} active={active} />
        ) : (
          state === "running" && <p className="text-quiet">It has printed nothing so far.</p>
        )}
      </div>
    </Section>
  );
}

function RunVerdict({
  result,
}: {
  result: { verdict: string; tasks: (Result & { task: string })[] };
}) {
  return (
    <div className="flex min-w-0 flex-col gap-4">
      <p className="flex items-center gap-2">
        <StateBadge state={result.verdict} /> the worst of {count(result.tasks.length, "task")}
      </p>
      {result.tasks.map((task) => (
        <details key={task.task} open={task.verdict === "different"} className="min-w-0">
          <summary className="py-1">
            <span className="mr-2 font-mono">{task.task}</span>
            <StateBadge state={task.verdict} />
          </summary>
          <div className="border-l border-line pl-4">
            <Verdict result={task} />
            <Link to="/runs/$id" params={{ id: task.of }} className="text-accent underline">
              {task.of}
            </Link>
          </div>
        </details>
      ))}
    </div>
  );
}

function Output({ text, active }: { text: string; active: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new text moves the end
  useEffect(() => {
    const block = active && place.current?.querySelector("pre");
    if (block) block.scrollTop = block.scrollHeight;
  }, [text, active]);
  return (
    <details open={active} className="min-w-0">
      <summary className="py-1 font-medium">What it printed</summary>
      <div ref={place} className="flex min-w-0">
        <TextBlock text={text} label="What the repeat printed" />
      </div>
    </details>
  );
}
