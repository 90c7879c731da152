import { Link } from "@tanstack/react-router";
import type { Schemas } from "@/api/client";
import { Command } from "@/components/copy";
import { formatBytes } from "@/components/format/bytes";
import { count } from "@/components/format/count";
import { Section } from "@/components/page";
import { ValueTable } from "../artifacts/value-table";
import { Notes } from "../remarks/notes";
import { type Execution, useMeasured } from "./use-execution";

/** What a user wants to know first: the command, its parameters, its own files and relatives. */
export function Summary({ execution }: { execution: Execution }) {
  const git = execution.git as { commit?: string; branch?: string; dirty?: boolean } | null;
  const parameters = execution.parameters as Record<string, unknown>;
  const metrics = useMeasured(execution.uid).data?.metrics ?? {};
  return (
    <div className="grid min-w-0 items-start gap-4 xl:grid-cols-2">
      <Section title="Command">
        <div className="flex min-w-0 flex-col gap-3">
          <Command text={execution.command.map(quote).join(" ")} />
          <ValueTable
            label="About the command"
            values={{
              directory: execution.cwd,
              ...(git?.commit && {
                git: `${git.commit.slice(0, 10)}${git.branch ? ` on ${git.branch}` : ""}${git.dirty ? ", with changes that were not committed" : ""}`,
              }),
              processes: execution.processes,
              read: count(execution.inputs ?? 0, "file"),
              wrote: count(execution.outputs ?? 0, "file"),
            }}
          />
        </div>
      </Section>
      <div className="flex min-w-0 flex-col gap-4 empty:hidden">
        {Object.keys(parameters).length > 0 && (
          <Section title="Parameters">
            <ValueTable label="Parameters" values={parameters} />
          </Section>
        )}
        {Object.keys(metrics).length > 0 && (
          <Section title="Metrics">
            <ValueTable label="Metrics" values={metrics} />
          </Section>
        )}
      </div>
      <OwnFiles title="Inputs" cwd={execution.cwd} files={execution.own_inputs} found />
      <OwnFiles title="Outputs" cwd={execution.cwd} files={execution.own_outputs} />
      <Relatives title="Derived from" relatives={execution.derived_from} />
      <Relatives title="Derived from it" relatives={execution.derived} />
      {execution.gaps.length > 0 && (
        <Section title="What could not be observed">
          <ul className="flex list-disc flex-col gap-1 pl-4">
            {execution.gaps.map((gap) => (
              <li key={`${gap.what} ${gap.path} ${gap.by}`} className="break-words">
                {gap.what}: {gap.why}
                {gap.path && <code className="ml-1 font-mono break-all">{gap.path}</code>}
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Notes target={execution.id ?? execution.uid} notes={execution.notes} />
    </div>
  );
}

function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A path as it is seen from the directory of the command. */
function shorten(path: string, cwd: string | null): string {
  return cwd && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}

function OwnFiles({
  title,
  files,
  cwd,
  found = false,
}: {
  title: string;
  files: Schemas["OwnFiles"];
  cwd: string | null;
  /** They were found, not made. */
  found?: boolean;
}) {
  if (!files.total) return null;
  return (
    <Section title={`${title} (${files.total})`}>
      <ul className="flex flex-col gap-0.5">
        {files.files.map((file) => (
          <li key={file.path} className="flex min-w-0 items-baseline gap-3">
            <Link
              from="/runs/$id"
              to="."
              search={(before) => ({
                ...before,
                tab: "files",
                file: found ? `${file.path}@input` : file.path,
              })}
              className="min-w-0 flex-1 truncate text-accent hover:underline"
              title={file.path}
            >
              {shorten(file.path, cwd)}
            </Link>
            {file.made_by && (
              <Link to="/runs/$id" params={{ id: file.made_by }} className="text-accent underline">
                from {file.made_by}
              </Link>
            )}
            <span className="shrink-0 text-quiet tabular-nums">
              {typeof file.size === "number" && formatBytes(file.size)}
            </span>
          </li>
        ))}
      </ul>
      {files.total > files.files.length && (
        <p className="mt-2 text-quiet">and {files.total - files.files.length} more, in Files</p>
      )}
    </Section>
  );
}

const HOW: Record<string, string> = {
  file: "by a file",
  copy: "by a copy of a file",
  parameter: "by a parameter",
  repetition: "as its repetition",
  modification: "with changes",
};

function Relatives({ title, relatives }: { title: string; relatives: Schemas["Relatives"] }) {
  if (!relatives.total) return null;
  return (
    <Section title={`${title} (${relatives.total})`}>
      <ul className="flex flex-col gap-1">
        {relatives.executions.map((one) => (
          <li key={`${one.id} ${one.how}`} className="flex min-w-0 items-baseline gap-2">
            <Link to="/runs/$id" params={{ id: one.id }} className="shrink-0 text-accent underline">
              {one.name ?? one.task ?? one.id}
            </Link>
            <span className="shrink-0 text-quiet">{HOW[one.how] ?? one.how}</span>
            <code className="min-w-0 truncate font-mono text-[0.93rem]">
              {one.command.join(" ")}
            </code>
          </li>
        ))}
      </ul>
    </Section>
  );
}
