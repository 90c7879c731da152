import { lazy, Suspense } from "react";
import { Skeleton } from "@/components/feedback";
import type { GraphViewProps } from "./graph-view";

const GraphView = lazy(() =>
  import("./graph-view").then((module) => ({ default: module.GraphView })),
);

/** The graph, loaded when it is first shown. */
export function LazyGraph(props: GraphViewProps) {
  return (
    <Suspense fallback={<Skeleton lines={6} />}>
      <GraphView {...props} />
    </Suspense>
  );
}
