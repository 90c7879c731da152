import { Link } from "@tanstack/react-router";
import { Copy, GitCompare, Repeat, Waypoints } from "lucide-react";
import { useState } from "react";
import { Button, ButtonLink } from "@/components/button";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Duration, Time } from "@/components/format/time";
import { Page } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { Tabs } from "@/components/tabs";
import { Tags } from "../remarks/tags";
import { RepeatDialog } from "../repeats/repeat-dialog";
import { RepeatsTab } from "../repeats/repeats-tab";
import { useRunSearch } from "../use-search";
import { Environment } from "./environment";
import { ExecutionMenu } from "./execution-menu";
import { FilesTab } from "./files-tab";
import { OutputTab } from "./output-tab";
import { Processes } from "./processes";
import { Summary } from "./summary";
import { type Execution, useExecution, useMeasured } from "./use-execution";

/** One recorded command: what it did, with what, and whether it can be done again. */
export function ExecutionPage({ id }: { id: string }) {
  const execution = useExecution(id);
  const [search, setSearch] = useRunSearch();
  const [repeating, setRepeating] = useState(false);
  if (execution.error)
    return (
      <Page title={id}>
        <ErrorCard error={execution.error} retry={() => execution.refetch()} />
      </Page>
    );
  if (!execution.data)
    return (
      <Page title={id}>
        <Skeleton lines={8} />
      </Page>
    );
  const found = execution.data;
  const shown = found.id ?? found.uid;
  const running = found.state === "running";
  return (
    <Page
      title={found.name ?? shown}
      subtitle={<Subtitle execution={found} />}
      actions={
        <>
          <Button look="primary" disabled={running} onClick={() => setRepeating(true)}>
            <Repeat size={15} aria-hidden /> Repeat
          </Button>
          <ButtonLink to="/lineage" search={{ target: shown }}>
            <Waypoints size={15} aria-hidden /> Lineage
          </ButtonLink>
          {found.parent && (
            <ButtonLink to="/compare" search={{ id: [found.parent, shown] }}>
              <GitCompare size={15} aria-hidden /> Compare with {found.parent}
            </ButtonLink>
          )}
          <ExecutionMenu execution={found} />
        </>
      }
    >
      <Tags id={shown} tags={found.tags} />
      {found.state === "failed" && <WhyItFailed uid={found.uid} />}
      <Tabs
        label="Parts of the execution"
        selected={search.tab ?? "summary"}
        onSelect={(tab) =>
          setSearch({ tab: tab === "summary" ? undefined : tab, find: undefined, line: undefined })
        }
        tabs={[
          { id: "summary", label: "Summary", content: <Summary execution={found} /> },
          { id: "output", label: "Output", content: <OutputTab id={shown} /> },
          { id: "files", label: "Files", content: <FilesTab id={shown} /> },
          { id: "processes", label: "Processes", content: <Processes processes={found.tree} /> },
          { id: "environment", label: "Environment", content: <Environment execution={found} /> },
          {
            id: "repeats",
            label: "Repeats",
            content: (
              <RepeatsTab
                uid={found.uid}
                command={`clew repeat ${shown}`}
                recorded={found.derived.executions}
              />
            ),
          },
        ]}
      />
      {repeating && (
        <RepeatDialog
          execution={found}
          onClose={() => setRepeating(false)}
          onQueued={(request) => {
            setRepeating(false);
            setSearch({ tab: "repeats", repeat: request.id });
          }}
        />
      )}
    </Page>
  );
}

/** The last line that it printed as an error; nothing if only its status, shown above, is known. */
function WhyItFailed({ uid }: { uid: string }) {
  const { error } = useMeasured(uid).data ?? {};
  return error && !error.startsWith("exit status ") && <ErrorCard error={new Error(error)} />;
}

function Subtitle({ execution }: { execution: Execution }) {
  const { state, status, kind, parent, task, started, seconds, agent } = execution;
  const label = state === "failed" && status !== null ? `failed, status ${status}` : state;
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <StateBadge state={state} label={label} />
      {execution.name && <span>{execution.id}</span>}
      <Time at={started} />
      <Duration seconds={seconds} />
      {agent && (
        <span className="max-w-64 truncate" title={agent}>
          by <bdi>{agent}</bdi>
        </span>
      )}
      {parent && (
        <span>
          {kind} of{" "}
          <Link to="/runs/$id" params={{ id: parent }} className="text-accent underline">
            {parent}
          </Link>
        </span>
      )}
      {task && !execution.made_elsewhere && (
        <span>
          task{" "}
          <Link
            to="/runs/$id"
            params={{ id: task.split("/", 1)[0] ?? task }}
            search={{ task: task.slice(task.indexOf("/") + 1) }}
            className="text-accent underline"
          >
            {task}
          </Link>
        </span>
      )}
      {execution.made_elsewhere && (
        <span className="inline-flex items-center gap-1">
          <Copy size={14} aria-hidden /> made elsewhere
          {execution.signed_by && `, signed by ${execution.signed_by}`}
        </span>
      )}
    </p>
  );
}
