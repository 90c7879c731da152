import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { Button } from "@/components/button";
import type { LineageGraph } from "./graph-model";
import type { View } from "./view";

interface Props {
  view: View;
  graph: LineageGraph;
  change: (change: (view: View) => View) => void;
}

/** What the user should know about the whole drawing: paths, gaps, and what is not shown. */
export function Notices({ view, graph, change }: Props) {
  const clearPath = () => change((now) => ({ ...now, from: undefined, to: undefined }));
  return (
    <>
      {view.from && !view.to && (
        <Notice action={<Button onClick={clearPath}>Cancel</Button>}>
          Select the other end of the path in the graph, or search for it.
        </Notice>
      )}
      {graph.path && (
        <Notice action={<Button onClick={clearPath}>Hide the path</Button>}>
          {graph.path.boxes.length
            ? `A shortest path has ${graph.path.shortest.length - 1} steps; all paths are highlighted.`
            : "No data flowed from one to the other."}
        </Notice>
      )}
      {graph.truncated && (
        <Notice>
          The lineage is too large to follow to its end. Take fewer steps, or start at a file in it.
        </Notice>
      )}
      {graph.withheld > 0 && (
        <Notice>
          {graph.withheld === 1 ? "One thing is" : `${graph.withheld} things are`} not shown: you
          may not read their namespaces.
        </Notice>
      )}
      {graph.missing.length > 0 && (
        <Notice>Not in the record any more: {graph.missing.slice(0, 3).join(", ")}</Notice>
      )}
      {graph.gaps.length > 0 && (
        <details className="rounded-lg border border-warning bg-warning-soft px-3 py-1.5">
          <summary>
            {graph.gaps.length === 1 ? "One thing" : `${graph.gaps.length} things`} could not be
            observed: the lineage may have gaps
          </summary>
          <ul className="mt-1 max-h-48 overflow-y-auto">
            {graph.gaps.map((gap) => (
              <li key={`${gap.id} ${gap.what} ${gap.path}`} className="break-words">
                <code>{gap.id}</code> {gap.what}: {gap.why}
                {gap.path && <code className="break-all"> {gap.path}</code>}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Notice({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div
      role="status"
      className="flex flex-wrap items-center gap-2 rounded-lg border border-line bg-accent-soft px-3 py-1.5"
    >
      <CircleAlert size={16} aria-hidden className="shrink-0 text-accent" />
      <span className="min-w-0 flex-1 break-words">{children}</span>
      {action}
    </div>
  );
}
