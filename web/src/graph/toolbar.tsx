import { Panel, useReactFlow } from "@xyflow/react";
import { Maximize, Minus, Plus, Search } from "lucide-react";
import { useState } from "react";
import { IconButton } from "@/components/button";
import { Input } from "@/components/fields/field";
import type { GraphNode } from "./graph";

/** The nodes whose text contains the words. */
export function findNodes(nodes: GraphNode[], text: string): GraphNode[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  return nodes.filter((node) => {
    const all = `${node.title} ${node.subtitle ?? ""} ${node.kind} ${node.id}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

/** Zoom, fit, and search: Enter goes from one match to the next. */
export function Toolbar({
  nodes,
  onGo,
  onFit,
}: {
  nodes: GraphNode[];
  onGo: (id: string) => void;
  onFit: () => void;
}) {
  const flow = useReactFlow();
  const [text, setText] = useState("");
  const [at, setAt] = useState(-1);
  const found = findNodes(nodes, text);
  function goOn() {
    const next = found[(at + 1) % found.length];
    if (!next) return;
    setAt((at + 1) % found.length);
    onGo(next.id);
  }
  return (
    <Panel position="top-left" className="flex max-w-[calc(100%-2rem)] items-center gap-1">
      <div className="flex items-center gap-1 rounded-lg border border-line bg-surface p-1 shadow-sm">
        <Search size={15} aria-hidden className="ml-1 shrink-0 text-quiet" />
        <Input
          type="search"
          data-filter
          aria-label="Find in the graph"
          placeholder="Find in the graph"
          className="w-36 border-transparent"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setAt(-1);
          }}
          onKeyDown={(event) => event.key === "Enter" && goOn()}
        />
        <span role="status" className="min-w-10 text-sm text-quiet">
          {text.trim() && (found.length ? `${Math.max(at, 0) + 1} of ${found.length}` : "none")}
        </span>
        <IconButton label="Zoom in" className="px-1.5" onClick={() => flow.zoomIn()}>
          <Plus size={15} aria-hidden />
        </IconButton>
        <IconButton label="Zoom out" className="px-1.5" onClick={() => flow.zoomOut()}>
          <Minus size={15} aria-hidden />
        </IconButton>
        <IconButton label="Fit into the window" className="px-1.5" onClick={onFit}>
          <Maximize size={15} aria-hidden />
        </IconButton>
      </div>
    </Panel>
  );
}
