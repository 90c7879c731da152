import { Handle, type NodeProps, Position } from "@xyflow/react";
import { memo, useContext } from "react";
import { classes } from "@/components/classes";
import { GraphContext } from "./context";
import type { GraphNode, Side, Tone } from "./graph";

const TONES: Record<Tone, string> = {
  neutral: "text-quiet",
  accent: "text-accent",
  success: "text-success",
  failure: "text-failure",
  running: "text-running",
  warning: "text-warning",
};
const SIDES = {
  right: {
    before: "top-1/2 right-full -translate-y-1/2",
    after: "top-1/2 left-full -translate-y-1/2",
  },
  down: {
    before: "bottom-full left-1/2 -translate-x-1/2",
    after: "top-full left-1/2 -translate-x-1/2",
  },
};

export interface BoxData extends Record<string, unknown> {
  node: GraphNode;
  isSelected: boolean;
  /** The one that Tab reaches; arrow keys move on from it. */
  isFocusable: boolean;
  emphasis: "none" | "on" | "off";
}

/** A node of a graph: a box, or the frame around others. It is a button, which selects it. */
export const Box = memo(function Box({ data }: NodeProps) {
  const { node, isSelected, isFocusable, emphasis } = data as BoxData;
  const { direction, onSelect, onKeyDown } = useContext(GraphContext);
  const Icon = node.icon;
  const tabIndex = isFocusable ? 0 : -1;
  const right = direction === "right";
  return (
    <div className={classes("relative size-full", emphasis === "off" && "opacity-35")}>
      <Handle type="target" position={right ? Position.Left : Position.Top} isConnectable={false} />
      <button
        type="button"
        data-node={node.id}
        tabIndex={tabIndex}
        aria-pressed={isSelected}
        aria-label={[`${node.kind},`, node.title, node.subtitle].filter(Boolean).join(" ")}
        title={[node.title, node.subtitle].filter(Boolean).join("\n")}
        onClick={() => onSelect(node.id)}
        onKeyDown={(event) => onKeyDown(event, node.id)}
        className={classes(
          "flex size-full gap-2 rounded-lg border px-2.5 text-left",
          node.isFrame ? "items-start bg-sunken/60 pt-1.5" : "items-center bg-raised shadow-sm",
          node.isPile &&
            "shadow-[4px_4px_0_-1px_var(--color-raised),4px_4px_0_0_var(--color-line-strong)]",
          isSelected ? "border-accent ring-2 ring-accent" : "border-line-strong",
          emphasis === "on" && !isSelected && "border-accent ring-1 ring-accent",
        )}
      >
        <Icon
          size={18}
          aria-hidden
          className={classes("shrink-0", TONES[node.tone ?? "neutral"])}
        />
        <span
          className={classes(
            "graph-text flex min-w-0 flex-1 leading-tight",
            node.isFrame ? "items-baseline gap-2" : "flex-col",
          )}
        >
          <span className={classes("truncate font-medium", node.isFrame && "shrink-0")}>
            {node.title}
          </span>
          {/* The name of the button must contain the text as it is read: with a space. */}{" "}
          {node.subtitle && <span className="truncate text-sm text-quiet">{node.subtitle}</span>}
        </span>
        {node.badge && <span className="graph-text shrink-0">{node.badge}</span>}
      </button>
      {(["before", "after"] as const).map((side) => (
        <MoreButton key={side} node={node} side={side} tabIndex={tabIndex} />
      ))}
      <Handle
        type="source"
        position={right ? Position.Right : Position.Bottom}
        isConnectable={false}
      />
    </div>
  );
});

function MoreButton({ node, side, tabIndex }: { node: GraphNode; side: Side; tabIndex: number }) {
  const { direction, onMore } = useContext(GraphContext);
  const label = node.more?.[side];
  if (!label) return null;
  return (
    <button
      type="button"
      tabIndex={tabIndex}
      aria-label={`${label} of ${node.title}`}
      title={label}
      onClick={() => onMore(node.id, side)}
      className={classes(
        "graph-text nodrag absolute grid size-6 place-items-center rounded-full border border-line-strong bg-surface leading-none hover:bg-accent-soft",
        SIDES[direction][side],
      )}
    >
      +
    </button>
  );
}
