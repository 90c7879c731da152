import { ChevronDown, ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { Button } from "@/components/button";
import { CopyButton } from "@/components/copy";
import { Section } from "@/components/page";
import { readContainer } from "../spec/component-code";
import { channelName } from "../spec/conditions";
import { artifactType, executorOf, type Json, part, parts, TYPE_NAMES, textOf } from "../spec/ir";
import type { SpecTask } from "../spec/pipeline-graph";

/** What a task runs, what it takes and what it gives. */
export function TaskPanel({
  spec,
  task,
  tasks,
  isOpen,
  onToggle,
}: {
  spec: unknown;
  task: SpecTask;
  tasks: Map<string, SpecTask>;
  isOpen: boolean;
  onToggle: () => void;
}) {
  const siblings = [...tasks.values()]
    .filter((one) => one.parent === task.parent)
    .map((one) => one.name);
  const executor = executorOf(spec, task.component);
  const container = readContainer(executor);
  const importer = part(executor, "importer");
  const retries = part(task.task, "retryPolicy").maxRetryCount;
  const caches = part(task.task, "cachingOptions").enableCache === true;
  return (
    <Section title={task.name}>
      <div className="flex flex-col gap-4">
        <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1">
          <Row label="Kind">{task.kind}</Row>
          {task.summary && task.kind !== "Python function" && (
            <Row label="Runs">{task.summary}</Row>
          )}
          {task.parent && <Row label="In">{task.parent}</Row>}
          {container && (
            <Row label="Image">
              <code className="break-all">{container.image}</code>
            </Row>
          )}
          {container && container.packages.length > 0 && (
            <Row label="Packages">{container.packages.join(", ")}</Row>
          )}
          {container?.resources.map(([label, value]) => (
            <Row key={label} label={label}>
              {value}
            </Row>
          ))}
          {Object.keys(importer).length > 0 && (
            <Row label="Imports">
              <code className="break-all">
                {textOf(part(importer.artifactUri).constant) || "a URI that the run computes"}
              </code>
            </Row>
          )}
          {Number(retries) > 0 && <Row label="Retries">{String(retries)}</Row>}
          {!task.children.length && (
            <Row label="Results">
              {caches ? "are reused if nothing has changed" : "are never reused"}
            </Row>
          )}
        </dl>
        {task.children.length > 0 && (
          <Button onClick={onToggle} aria-expanded={isOpen}>
            {isOpen ? (
              <ChevronDown size={15} aria-hidden />
            ) : (
              <ChevronRight size={15} aria-hidden />
            )}
            {isOpen ? "Hide its tasks" : "Show its tasks"}
          </Button>
        )}
        <Ports title="Inputs" definitions={part(task.component, "inputDefinitions")}>
          {(name) => sourceOf(task.task, name, siblings)}
        </Ports>
        <Ports title="Outputs" definitions={part(task.component, "outputDefinitions")} />
        {container?.code && <Code title={`Code: ${container.function}`} text={container.code} />}
        {container && container.command.length > 0 && (
          <Code title="Command" text={container.command.join("\n")} />
        )}
        {container && container.env.length > 0 && (
          <Code
            title="Environment"
            text={container.env.map(([name, value]) => `${name}=${value}`).join("\n")}
          />
        )}
      </div>
    </Section>
  );
}

function Row({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-quiet">{label}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  );
}

function Ports({
  title,
  definitions,
  children,
}: {
  title: string;
  definitions: Json;
  children?: (name: string) => string;
}) {
  const ports = [
    ...parts(definitions, "parameters").map(
      ([name, one]) => [name, TYPE_NAMES[textOf(one.parameterType)] ?? ""] as const,
    ),
    ...parts(definitions, "artifacts").map(([name, one]) => [name, artifactType(one)] as const),
  ];
  if (!ports.length) return null;
  return (
    <div>
      <h3 className="mb-1 font-medium">{title}</h3>
      <ul className="flex flex-col gap-1">
        {ports.map(([name, type]) => {
          const source = children?.(name);
          return (
            <li key={name} className="min-w-0 break-words">
              <code>{channelName(name)}</code> <span className="text-quiet">{type}</span>
              {source && <span className="block pl-3 text-quiet">{source}</span>}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** Where an input comes from, in words. */
function sourceOf(task: Json, name: string, siblings: string[]): string {
  const parameter = part(task, "inputs", "parameters", name);
  const artifact = part(task, "inputs", "artifacts", name);
  const constant = part(parameter, "runtimeValue").constant;
  if (constant !== undefined) return `= ${JSON.stringify(constant)}`;
  const produced = [
    [part(parameter, "taskOutputParameter"), "outputParameterKey"],
    [part(artifact, "taskOutputArtifact"), "outputArtifactKey"],
  ] as const;
  for (const [source, key] of produced)
    if (source.producerTask) return `← ${textOf(source.producerTask)}.${textOf(source[key])}`;
  const input =
    textOf(parameter.componentInputParameter) || textOf(artifact.componentInputArtifact);
  if (input) return `← ${channelName(input, siblings)}`;
  const status = textOf(part(parameter, "taskFinalStatus").producerTask);
  return status ? `← the status of ${status}` : "";
}

function Code({ title, text }: { title: string; text: string }) {
  return (
    <div className="min-w-0">
      <h3 className="mb-1 flex items-center font-medium">
        <span className="flex-1">{title}</span>
        <CopyButton text={text} label={`Copy: ${title}`} />
      </h3>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        className="max-h-96 overflow-auto rounded-md border border-line bg-sunken p-2 font-mono text-sm"
      >
        {text}
      </pre>
    </div>
  );
}
