import { Background, MiniMap, ReactFlow, ReactFlowProvider, useStore } from "@xyflow/react";
import { useMemo } from "react";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Box } from "./box";
import { GraphContext } from "./context";
import { buildEdges, buildNodes } from "./elements";
import { type Direction, type GraphLink, type GraphNode, MAX_NODES, type Side } from "./graph";
import { absoluteRectangles } from "./layout";
import { Toolbar } from "./toolbar";
import { useLayout } from "./use-layout";
import { useNavigation } from "./use-navigation";
import "@xyflow/react/dist/base.css";
import "./graph.css";

export interface GraphViewProps {
  /** Names the graph for screen readers. */
  label: string;
  nodes: GraphNode[];
  links: GraphLink[];
  direction?: Direction;
  selected?: string | null;
  /** Null: the selection was cleared. */
  onSelect?: (id: string | null) => void;
  /** The user wants to follow a node that has `more` on this side. */
  onMore?: (id: string, side: Side) => void;
  /** Nodes on a path; all others are drawn faintly. */
  highlighted?: ReadonlySet<string> | null;
  /** Shown in the middle if the whole graph does not fit readably. */
  focus?: string | null;
  className?: string;
}

const NODE_TYPES = { box: Box };
/** Without a handler, xyflow makes its nodes, and so our buttons, ignore mouse events. */
const letClicksPass = () => {};
/** Below this scale nobody can read text: it is left out, which keeps large graphs smooth. */
const READABLE = 0.42;
/** From here on only what is in the window is in the document. */
const MANY = 150;
/** Smaller graphs fit the window, and need no map. */
const MAPPED = 20;

/**
 * A graph to look at and to walk through: it pans, zooms and fits, has a map and a search, and the
 * arrow keys move from box to box. Load it lazily: its libraries are large.
 */
export function GraphView(props: GraphViewProps) {
  if (props.nodes.length > MAX_NODES) {
    return (
      <EmptyState title={`${props.nodes.length.toLocaleString("en")} nodes are too many to draw`}>
        Choose a filter, collapse groups, or look at them as a table. At most{" "}
        {MAX_NODES.toLocaleString("en")} are drawn.
      </EmptyState>
    );
  }
  return (
    <ReactFlowProvider>
      <Canvas {...props} />
    </ReactFlowProvider>
  );
}

function Canvas({
  label,
  nodes,
  links,
  direction = "right",
  selected = null,
  onSelect,
  onMore,
  highlighted = null,
  focus = null,
  className = "h-[60vh] min-h-80",
}: GraphViewProps) {
  const { rectangles, isPending, error } = useLayout(nodes, links, direction);
  const absolute = useMemo(
    () => (rectangles ? absoluteRectangles(nodes, rectangles) : null),
    [nodes, rectangles],
  );
  const navigation = useNavigation({
    nodes,
    links,
    rectangles: absolute,
    direction,
    selected,
    focus,
    onSelect,
    onMore,
  });
  const isSmall = useStore((state) => state.transform[2] < READABLE);
  const { focusable } = navigation;
  const flowNodes = useMemo(
    () => buildNodes(nodes, rectangles, { selected, focusable, highlighted }),
    [nodes, rectangles, selected, focusable, highlighted],
  );
  const flowEdges = useMemo(
    () => buildEdges(links, rectangles, highlighted, selected),
    [links, rectangles, highlighted, selected],
  );
  if (error) return <ErrorCard error={error} />;
  if (!rectangles) return <Skeleton lines={6} />;
  return (
    <GraphContext.Provider value={navigation.actions}>
      <section
        aria-label={label}
        aria-busy={isPending}
        className={`graph relative overflow-hidden rounded-lg border border-line bg-page ${className}`}
        data-small={isSmall || undefined}
      >
        <ReactFlow
          nodes={flowNodes}
          edges={flowEdges}
          nodeTypes={NODE_TYPES}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          disableKeyboardA11y
          onNodeClick={letClicksPass}
          onlyRenderVisibleElements={nodes.length > MANY}
          minZoom={0.03}
          maxZoom={2}
          onInit={navigation.showAtFirst}
          onPaneClick={() => onSelect?.(null)}
          proOptions={{ hideAttribution: true }}
        >
          <Background gap={24} size={1} />
          {nodes.length > MAPPED && (
            <MiniMap pannable zoomable ariaLabel="Map of the graph" className="graph-map" />
          )}
          <Toolbar nodes={nodes} onGo={navigation.goTo} onFit={navigation.fit} />
        </ReactFlow>
        {isPending && (
          <p role="status" className="absolute right-3 bottom-3 rounded bg-surface px-2 text-quiet">
            Arranging…
          </p>
        )}
      </section>
    </GraphContext.Provider>
  );
}
