import {
  ArrowLeftToLine,
  ArrowRightToLine,
  ChartLine,
  GitCompare,
  Repeat,
  Route,
  TriangleAlert,
  X,
} from "lucide-react";
import type { ReactNode } from "react";
import { Button, ButtonLink, IconButton } from "@/components/button";
import { Command, CopyButton } from "@/components/copy";
import { formatBytes } from "@/components/format/bytes";
import { count } from "@/components/format/count";
import { Time } from "@/components/format/time";
import { describeKind } from "@/components/kinds";
import type { Side } from "@/graph/graph";
import { type Box, describeFlow, type LineageGraph, listNeighbours, MARKS } from "../graph-model";
import { closeGroup, expand, openGroup, select, startAt, type View } from "../view";
import { findLogFolder, isLeftByPods, isOfCluster, listCommands } from "./commands";
import { ContentPreview } from "./content-preview";
import { VersionList } from "./version-list";

interface Props {
  box: Box;
  graph: LineageGraph;
  view: View;
  change: (change: (view: View) => View) => void;
}

/** All about the selected box: what it is, where it stands in the lineage, and what can be done. */
export function NodePanel(props: Props) {
  const { box, view, change } = props;
  const kind = describeKind(box.kind);
  return (
    <section
      aria-label="Selected"
      className="flex min-w-0 flex-col gap-4 rounded-lg border border-line bg-surface p-4 lg:max-h-[calc(100vh-9rem)] lg:overflow-y-auto"
    >
      <header className="flex items-start gap-2">
        <kind.icon size={20} aria-hidden className="mt-0.5 shrink-0 text-quiet" />
        <div className="min-w-0 flex-1">
          <h2 className="break-words">{box.title}</h2>
          <p className="text-quiet">
            {box.count > 1 ? `${box.count} like things, ${box.subtitle}` : kind.label}
          </p>
        </div>
        <IconButton
          label="Close the details"
          className="px-1.5"
          onClick={() => change((now) => select(now, null))}
        >
          <X size={16} aria-hidden />
        </IconButton>
      </header>
      <Remarks {...props} />
      {box.node ? <NodeActions {...props} /> : <GroupActions {...props} />}
      {box.node && <Facts box={box} />}
      {box.node?.version && box.node.stored && <ContentPreview id={box.id} />}
      <Around {...props} side="before" title="Made from" />
      <Around {...props} side="after" title="Went into" />
      {box.node?.locator && <VersionList {...props} locator={box.node.locator} />}
      {box.node && (
        <details>
          <summary className="font-medium">Commands</summary>
          <ul className="mt-2 flex flex-col gap-2">
            {listCommands(box, view.as_of).map(({ command, does }) => (
              <li key={command} className="min-w-0">
                <p className="text-sm text-quiet">{does}</p>
                <Command text={command} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

/** Where the chain of observations has a break, or is inferred. */
function Remarks({ box, graph, change }: Props) {
  const gaps = listGaps(box, graph);
  const copies = box.node?.same_content ?? [];
  return (
    <>
      {box.marks.includes("changed_outside") && (
        <Remark tone="warning" title={MARKS.changed_outside}>
          Its content is not what the last recorded process left here. Who changed it was not
          observed.
        </Remark>
      )}
      {gaps.map((gap) => (
        <Remark
          key={`${gap.what} ${gap.path} ${gap.why}`}
          tone="warning"
          title={`Not observed: ${gap.what}`}
        >
          {gap.why}
          {gap.path && <code className="block break-all">{gap.path}</code>}
        </Remark>
      ))}
      {copies.length > 0 && (
        <Remark tone="note" title="Inferred, not observed">
          It has the same content as{" "}
          {copies.map((copy, index) => (
            <span key={copy.version}>
              {index > 0 && ", "}
              <button
                type="button"
                className="text-left break-all text-accent underline"
                onClick={() => change((now) => startAt(now, copy.version))}
              >
                {copy.version}
              </button>
              {copy.member && ` (as ${copy.member} in this archive)`}
            </span>
          ))}
          . Nobody saw how it came here.
          {copies[0]?.strength === "weak" &&
            " The content is so small or common that this is weak."}
        </Remark>
      )}
      {box.marks.includes("made_elsewhere") && (
        <Remark tone="note" title="Recorded elsewhere">
          This is a claim of an imported record.
        </Remark>
      )}
    </>
  );
}

/** What was not observed of it. What is not known of a Pod counts for its containers, too. */
function listGaps(box: Box, graph: LineageGraph) {
  if (box.node?.gaps?.length) return box.node.gaps;
  return graph.gaps.filter(({ id }) => id === box.id);
}

function Remark({
  tone,
  title,
  children,
}: {
  tone: "warning" | "note";
  title: ReactNode;
  children: ReactNode;
}) {
  const isWarning = tone === "warning";
  return (
    <div
      className={`rounded-md border p-2.5 ${isWarning ? "border-warning bg-warning-soft" : "border-dashed border-line-strong"}`}
    >
      <p className="flex items-center gap-1.5 font-medium first-letter:uppercase">
        {isWarning && <TriangleAlert size={15} aria-hidden className="shrink-0 text-warning" />}
        {title}
      </p>
      <div className="break-words">{children}</div>
    </div>
  );
}

function NodeActions({ box, graph, view, change }: Props) {
  const { node } = box;
  const ofCluster = isOfCluster(box);
  const execution = node?.execution ?? (node?.kind === "execution" ? box.id : null);
  const logs = findLogFolder(box);
  return (
    <div className="flex flex-wrap gap-2">
      <Button onClick={() => change((now) => startAt(now, box.id, "up"))}>
        <ArrowLeftToLine size={15} aria-hidden /> What produced this
      </Button>
      <Button onClick={() => change((now) => startAt(now, box.id, "down"))}>
        <ArrowRightToLine size={15} aria-hidden /> What was derived from it
      </Button>
      {node?.version && (
        <Button onClick={() => change((now) => ({ ...now, dialog: "compare" }))}>
          <GitCompare size={15} aria-hidden /> What differs…
        </Button>
      )}
      {(ofCluster ? isLeftByPods(box) : node?.version) && (
        <Button onClick={() => change((now) => ({ ...now, dialog: "reproduce" }))}>
          <Repeat size={15} aria-hidden /> Reproduce…
        </Button>
      )}
      {!ofCluster && !node?.version && execution && (
        <ButtonLink to="/runs/$id" params={{ id: execution }}>
          <Repeat size={15} aria-hidden /> Open and repeat {execution}
        </ButtonLink>
      )}
      {logs && (
        <ButtonLink to="/tensorboards/new" search={{ logspath: logs }}>
          <ChartLine size={15} aria-hidden /> Open a TensorBoard
        </ButtonLink>
      )}
      <Button
        aria-pressed={view.from === box.id}
        onClick={() => change((now) => ({ ...now, from: box.id, to: undefined }))}
      >
        <Route size={15} aria-hidden /> Path to…
      </Button>
      {box.frame && <CloseGroup box={box} graph={graph} change={change} />}
    </div>
  );
}

function CloseGroup({ box, graph, change }: Pick<Props, "box" | "graph" | "change">) {
  const { frame } = box;
  if (!frame) return null;
  const members = graph.boxes.filter((one) => one.frame === frame).map(({ id }) => id);
  return (
    <Button onClick={() => change((now) => closeGroup(now, frame, new Set(members)))}>
      Collapse its group
    </Button>
  );
}

function GroupActions({ box, change }: Props) {
  return (
    <div className="flex flex-wrap gap-2">
      <Button look="primary" onClick={() => change((now) => openGroup(now, box.id))}>
        Show all {box.count}
      </Button>
    </div>
  );
}

/** An opened group: what it has, and how to close it. */
export function FramePanel({
  frame,
  graph,
  change,
}: {
  frame: LineageGraph["frames"][number];
  graph: LineageGraph;
  change: Props["change"];
}) {
  const members = graph.boxes.filter((box) => box.frame === frame.id).map(({ id }) => id);
  return (
    <section
      aria-label="Selected"
      className="flex min-w-0 flex-col gap-4 rounded-lg border border-line bg-surface p-4"
    >
      <div>
        <h2 className="break-words">{frame.title}</h2>
        <p className="text-quiet">An open group, {frame.subtitle}</p>
      </div>
      <div>
        <Button
          look="primary"
          onClick={() => change((now) => closeGroup(now, frame.id, new Set(members)))}
        >
          Collapse the group
        </Button>
      </div>
    </section>
  );
}

function Facts({ box }: { box: Box }) {
  const { node } = box;
  if (!node) return null;
  const { package: owner } = node;
  const facts: [string, ReactNode][] = [
    [
      "Command",
      Boolean(node.command?.length) && <code className="break-all">{node.command?.join(" ")}</code>,
    ],
    ["Pod", node.pod && <code className="break-all">{node.pod}</code>],
    ["Container", node.container],
    ["Image", node.image && <code className="break-all">{node.image}</code>],
    ["Created by", node.owner],
    ["Machine", node.node],
    ["Why there", node.placement],
    ["Started by", node.agent && <span className="break-all">{node.agent}</span>],
    ["Path", node.path && <code className="break-all">{node.path}</code>],
    ["Id", <Copied key="id" text={node.id} />],
    [
      "Execution",
      node.execution && !isOfCluster(box) && (
        <ButtonLink
          look="quiet"
          className="-mx-3 text-accent underline"
          to="/runs/$id"
          params={{ id: node.execution }}
        >
          {node.execution}
        </ButtonLink>
      ),
    ],
    ["Program", node.exe && <code className="break-all">{node.exe}</code>],
    ["Directory", node.cwd && <code className="break-all">{node.cwd}</code>],
    [node.found ? "Found" : "Made", node.at && <Time at={node.at} />],
    ["Started", node.started && <Time at={node.started} />],
    ["Size", node.size == null ? null : formatBytes(node.size)],
    ["Digest", node.digest && <Copied text={node.digest} />],
    ["Package", owner && [owner.manager, owner.name, owner.version].join(" ")],
    ["Source", node.source && <span className="break-all">{node.source}</span>],
    ["Content", node.version && !node.stored ? "not stored, only its digest" : null],
    ["Also used", node.hidden ? `${count(node.hidden, "file")} of packages` : null],
  ];
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] items-baseline gap-x-4 gap-y-1">
      {facts.map(
        ([name, value]) =>
          value && (
            <div key={name} className="contents">
              <dt className="text-quiet">{name}</dt>
              <dd className="min-w-0">{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

function Copied({ text }: { text: string }) {
  return (
    <span className="flex items-center gap-1">
      <code className="min-w-0 truncate" title={text}>
        {text}
      </code>
      <CopyButton text={text} label={`Copy ${text}`} />
    </span>
  );
}

/** The neighbours on one side: those that are drawn, and a way to the others. */
function Around({ box, graph, change, side, title }: Props & { side: Side; title: string }) {
  const neighbours = listNeighbours(graph, box.id, side);
  const more = box[side];
  if (!neighbours.length && !more) return null;
  return (
    <div>
      <h3 className="font-medium">{title}</h3>
      <ul className="max-h-60 overflow-y-auto">
        {neighbours.map(({ box: other, kinds, isInferred }) => {
          const { icon: Icon } = describeKind(other.kind);
          return (
            <li key={other.id}>
              <button
                type="button"
                className="flex w-full min-w-0 items-center gap-2 rounded px-1 py-0.5 text-left hover:bg-sunken"
                onClick={() => change((now) => select(now, other.id))}
              >
                <Icon size={15} aria-hidden className="shrink-0 text-quiet" />
                <span className="truncate">{other.title}</span>
                <span
                  className={`ml-auto shrink-0 text-sm ${isInferred ? "text-warning" : "text-quiet"}`}
                >
                  {describeFlow(kinds)}
                </span>
              </button>
            </li>
          );
        })}
      </ul>
      {more > 0 && (
        <Button className="mt-1" onClick={() => change((now) => expand(now, box.id, side))}>
          Show {more.toLocaleString("en")} more
        </Button>
      )}
    </div>
  );
}
