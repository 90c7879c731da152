import { useEffect, useMemo, useState } from "react";
import type { Direction, GraphLink, GraphNode, Rectangles } from "./graph";
import { arrange } from "./layout";

interface Layout {
  /** Relative to the frame of each node; null before the first layout is there. */
  rectangles: Rectangles | null;
  isPending: boolean;
  error: unknown;
}

/** What decides about the places: not titles and states, which may change often. */
function structureOf(nodes: GraphNode[], links: GraphLink[], direction: Direction): string {
  const ids = nodes.map(({ id, parent, isFrame }) => [id, parent, isFrame]);
  return JSON.stringify([direction, ids, links.map(({ source, target }) => [source, target])]);
}

/** Lays out the graph again whenever its structure changes. Meanwhile the last layout stands. */
export function useLayout(nodes: GraphNode[], links: GraphLink[], direction: Direction): Layout {
  const structure = useMemo(() => structureOf(nodes, links, direction), [nodes, links, direction]);
  const [done, setDone] = useState<{ structure: string; rectangles: Rectangles | null }>({
    structure: "",
    rectangles: null,
  });
  const [error, setError] = useState<unknown>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the structure stands for the rest
  useEffect(() => {
    let isCurrent = true;
    arrange(nodes, links, direction).then(
      (rectangles) => isCurrent && setDone({ structure, rectangles }),
      (failure) => isCurrent && setError(failure),
    );
    return () => {
      isCurrent = false;
    };
  }, [structure]);
  return { rectangles: done.rectangles, isPending: done.structure !== structure, error };
}
