import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import { Button } from "@/components/button";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Page } from "@/components/page";
import { LazyGraph } from "@/graph/lazy";
import { ExportMenu } from "./export/export-menu";
import {
  buildGraphLinks,
  buildGraphNodes,
  findBox,
  findHighlighted,
  type LineageGraph,
} from "./graph-model";
import { LineageTable } from "./lineage-table";
import { Notices } from "./notices";
import { CompareDialog } from "./panel/compare-dialog";
import { FramePanel, NodePanel } from "./panel/node-panel";
import { ReproduceDialog } from "./panel/reproduce-dialog";
import { useLineage } from "./query";
import { SearchBox } from "./search-box";
import { Start } from "./start";
import { Filters, LineageToolbar } from "./toolbar";
import { expand, openGroup, select, startAt, type View } from "./view";

const route = getRouteApi("/lineage");

/** Where things came from and what they went into: a graph that grows on demand, or a table. */
export function LineagePage() {
  const view = route.useSearch();
  const navigate = route.useNavigate();
  const change = useMemo(
    () => (next: (view: View) => View) => {
      navigate({ search: (now) => next(now), replace: false, resetScroll: false });
    },
    [navigate],
  );
  if (!view.target) return <Start onChoose={(target) => change((now) => startAt(now, target))} />;
  return <Lineage view={view} change={change} />;
}

function Lineage({ view, change }: { view: View; change: (change: (view: View) => View) => void }) {
  const isTable = view.view === "table";
  const { data: graph, error, isPlaceholderData, refetch } = useLineage(view, !isTable);
  const root = graph && findBox(graph, graph.target);
  // A Pod is drawn as its container: that has another id.
  const selected =
    graph && (findBox(graph, view.node) ?? (view.node === view.target ? root : null));
  const frame = graph?.frames.find(({ id }) => id === view.node);
  const close = () => change((now) => ({ ...now, dialog: undefined, other: undefined }));
  return (
    <Page
      title={root ? `Lineage of ${root.title}` : "Lineage"}
      subtitle={
        <code className="break-all">
          {root?.node?.pod ? view.target : (graph?.target ?? view.target)}
        </code>
      }
      actions={
        <>
          <ExportMenu view={view} graph={graph} />
          <Button onClick={() => change(() => ({}))}>New search</Button>
        </>
      }
    >
      <div className="flex flex-wrap items-center gap-3">
        <div className="min-w-56 flex-1">
          <SearchBox
            label="Search for another file, model, Pod, run or image"
            placeholder={
              view.from && !view.to
                ? "Search for the other end of the path"
                : "Search for another one"
            }
            onChoose={({ id }) =>
              change((now) =>
                now.from && !now.to ? { ...now, to: id, node: id } : startAt(now, id),
              )
            }
          />
        </div>
        <LineageToolbar view={view} change={change} />
      </div>
      {error ? (
        <ErrorCard error={error} retry={refetch} />
      ) : !graph ? (
        <Skeleton lines={8} />
      ) : (
        <>
          <Filters view={view} graph={graph} change={change} />
          <Notices view={view} graph={graph} change={change} />
          <div
            aria-busy={isPlaceholderData}
            className={
              selected || frame
                ? "grid min-w-0 gap-4 lg:grid-cols-[minmax(0,1fr)_24rem]"
                : "min-w-0"
            }
          >
            {isTable ? (
              <LineageTable graph={graph} view={view} change={change} />
            ) : (
              <Drawing graph={graph} view={view} change={change} />
            )}
            {frame ? (
              <FramePanel frame={frame} graph={graph} change={change} />
            ) : (
              selected && <NodePanel box={selected} graph={graph} view={view} change={change} />
            )}
          </div>
          {selected?.node && view.dialog === "compare" && (
            <CompareDialog
              box={selected}
              other={view.other}
              onChoose={(other) => change((now) => ({ ...now, other }))}
              onClose={close}
            />
          )}
          {selected?.node && view.dialog === "reproduce" && (
            <ReproduceDialog box={selected} asOf={view.as_of} onClose={close} />
          )}
        </>
      )}
    </Page>
  );
}

/** A group that is selected already opens when it is clicked again. */
function isOpenable(graph: LineageGraph, view: View, id: string | null): id is string {
  return id === view.node && graph.boxes.some((box) => box.id === id && box.count > 1);
}

function Drawing({
  graph,
  view,
  change,
}: {
  graph: LineageGraph;
  view: View;
  change: (change: (view: View) => View) => void;
}) {
  const nodes = useMemo(() => buildGraphNodes(graph), [graph]);
  const links = useMemo(() => buildGraphLinks(graph), [graph]);
  const highlighted = useMemo(() => findHighlighted(graph), [graph]);
  if (!graph.boxes.length)
    return (
      <EmptyState title="The filters leave nothing to draw">Show more kinds or times.</EmptyState>
    );
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <LazyGraph
        label={`Lineage of ${graph.target}`}
        nodes={nodes}
        links={links}
        selected={findBox(graph, view.node)?.id ?? view.node ?? null}
        onSelect={(id) =>
          change((now) => (isOpenable(graph, now, id) ? openGroup(now, id) : select(now, id)))
        }
        onMore={(id, side) => change((now) => expand(now, id, side))}
        highlighted={highlighted}
        focus={graph.roots[0] ?? null}
        className="h-[55vh] min-h-80 lg:h-[calc(100vh-21rem)]"
      />
      <p className="flex flex-wrap gap-x-4 text-sm text-quiet">
        <span>Data flows from left to right.</span>
        <span className="inline-flex items-center gap-1.5">
          <svg width="28" height="6" aria-hidden="true">
            <line x1="0" y1="3" x2="28" y2="3" stroke="currentColor" strokeWidth="1.5" />
          </svg>
          observed
        </span>
        <span className="inline-flex items-center gap-1.5">
          <svg width="28" height="6" aria-hidden="true">
            <line
              x1="0"
              y1="3"
              x2="28"
              y2="3"
              stroke="currentColor"
              strokeWidth="1.5"
              strokeDasharray="5 4"
            />
          </svg>
          inferred: same content, nobody saw the copy
        </span>
        <span>
          Keys: arrows move, <kbd>[</kbd> and <kbd>]</kbd> show more before and after.
        </span>
      </p>
    </div>
  );
}
