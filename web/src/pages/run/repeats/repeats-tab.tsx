import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { api } from "@/api/client";
import { Button, ButtonLink } from "@/components/button";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { count } from "@/components/format/count";
import { Time } from "@/components/format/time";
import { Section } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { TextBlock } from "../artifacts/text-block";
import { useRunSearch } from "../use-search";
import { listRepeats, type Relative } from "./repeat-list";
import { isActive, useRepeat, useRepeats } from "./use-repeats";
import { type Result, Verdict } from "./verdict";

const NONE: readonly Relative[] = [];

/** The repeats of an execution or run, in the app and at the command line, and one in detail. */
export function RepeatsTab({
  uid,
  command,
  recorded = NONE,
}: {
  uid: string;
  command: string;
  /** The executions that were derived from it: some repeat it. */
  recorded?: readonly Relative[];
}) {
  const [search, setSearch] = useRunSearch();
  const repeats = useRepeats(uid);
  if (repeats.error) return <ErrorCard error={repeats.error} retry={() => repeats.refetch()} />;
  if (!repeats.data) return <Skeleton />;
  const all = listRepeats(repeats.data, recorded);
  const selected = all.find(({ id }) => id === search.repeat)?.id ?? search.repeat ?? all[0]?.id;
  if (!selected) {
    return (
      <EmptyState title="It has not been repeated yet" command={command}>
        A repeat runs the command again with exactly what it had, and says whether the results are
        the same. Press Repeat, or use the command line.
      </EmptyState>
    );
  }
  const elsewhere = recorded.find((one) => one.uid === selected);
  const isRequest = repeats.data.some(({ id }) => id === selected);
  return (
    <div className="grid min-w-0 items-start gap-4 lg:grid-cols-[18rem_1fr]">
      <ul className="flex min-w-0 flex-col gap-1" aria-label="Repeats">
        {all.map(({ id, state, at, about }) => (
          <li key={id}>
            <button
              type="button"
              aria-current={id === selected}
              className={`flex w-full flex-wrap items-center gap-2 rounded-md border px-3 py-2 text-left ${id === selected ? "border-accent bg-accent-soft" : "border-line bg-surface hover:bg-sunken"}`}
              onClick={() => setSearch({ repeat: id })}
            >
              <StateBadge state={state} />
              <Time at={at} />
              {about && <span className="w-full truncate text-quiet">{about}</span>}
            </button>
          </li>
        ))}
      </ul>
      {elsewhere && !isRequest ? (
        <RecordedRepeat of={uid} repeat={elsewhere} />
      ) : (
        <RepeatView id={selected} />
      )}
    </div>
  );
}

/** A repeat whose result was stored elsewhere: an execution of its own, which can be compared. */
function RecordedRepeat({ of, repeat }: { of: string; repeat: Relative }) {
  return (
    <Section title="A repeat that was recorded elsewhere">
      <p className="flex flex-wrap items-center gap-3">
        <Link to="/runs/$id" params={{ id: repeat.id }} className="text-accent underline">
          {repeat.id}
        </Link>
        <span className="text-quiet">
          {repeat.how === "modification" ? "with changes" : "as it was"}
        </span>
        <ButtonLink to="/compare" search={{ id: [of, repeat.id] }}>
          Compare
        </ButtonLink>
      </p>
    </Section>
  );
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
