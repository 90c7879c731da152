import { useReactFlow, useStoreApi } from "@xyflow/react";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import type { Direction, GraphLink, GraphNode, Rectangles, Side } from "./graph";
import { findNeighbour, isArrowKey } from "./neighbours";
import { frameAround } from "./viewport";

interface Input {
  nodes: GraphNode[];
  links: GraphLink[];
  /** On the canvas. */
  rectangles: Rectangles | null;
  direction: Direction;
  selected: string | null;
  focus: string | null;
  onSelect?: (id: string | null) => void;
  onMore?: (id: string, side: Side) => void;
}

const READABLE_ZOOM = 0.8;
/** The toolbar lies over the top. */
const FIT = { padding: { x: 0.08, bottom: 0.08, top: "64px" }, maxZoom: 1.1 } as const;
const MORE_KEYS: Record<string, Side> = { "[": "before", "]": "after" };

/** Moving through a graph: with arrow keys, to what was searched, and without jumps when it grows. */
export function useNavigation(input: Input) {
  const flow = useReactFlow();
  const store = useStoreApi();
  const latest = useRef(input);
  latest.current = input;
  const [focused, setFocused] = useState<string | null>(null);
  const previous = useRef<Rectangles | null>(null);
  const anchor = useRef<string | null>(null);
  const { rectangles, nodes, selected, focus } = input;

  const focusable = useMemo(() => {
    const has = (id: string | null) => id !== null && nodes.some((node) => node.id === id);
    return [focused, selected, focus].find(has) ?? nodes[0]?.id ?? null;
  }, [nodes, focused, selected, focus]);

  /** Keep the box that the user acted on where it is, while the graph around it changes. */
  useEffect(() => {
    const before = previous.current;
    previous.current = rectangles;
    if (!before || !rectangles || before === rectangles) return;
    const id = anchor.current ?? latest.current.selected ?? latest.current.focus;
    const [old, now] = [id && before.get(id), id && rectangles.get(id)];
    if (!old || !now) {
      flow.fitView(FIT);
      return;
    }
    const { x, y, zoom } = flow.getViewport();
    if (old.width !== now.width || old.height !== now.height) {
      // It became a frame, or a box again: what matters is what is selected in it.
      const inside = rectangles.get(latest.current.selected ?? "") ?? now;
      const centre = [inside.x + inside.width / 2, inside.y + inside.height / 2] as const;
      flow.setCenter(...centre, { zoom: Math.max(zoom, READABLE_ZOOM) });
      return;
    }
    flow.setViewport({ x: x + (old.x - now.x) * zoom, y: y + (old.y - now.y) * zoom, zoom });
  }, [rectangles, flow]);

  return useMemo(() => {
    function centre(id: string) {
      const place = latest.current.rectangles?.get(id);
      if (!place) return;
      const zoom = Math.max(flow.getZoom(), READABLE_ZOOM);
      flow.setCenter(place.x + place.width / 2, place.y + place.height / 2, { zoom });
    }

    /** Pan only if the box is not in the window. */
    function show(id: string) {
      const place = latest.current.rectangles?.get(id);
      if (!place) return;
      const { x, y, zoom } = flow.getViewport();
      const { width, height } = store.getState();
      const [left, top] = [place.x * zoom + x, place.y * zoom + y];
      const isInside =
        left >= 0 &&
        top >= 0 &&
        left + place.width * zoom <= width &&
        top + place.height * zoom <= height;
      if (!isInside) centre(id);
    }

    function focusBox(id: string) {
      show(id);
      setFocused(id);
      requestAnimationFrame(() =>
        requestAnimationFrame(() =>
          document.querySelector<HTMLElement>(`[data-node="${CSS.escape(id)}"]`)?.focus(),
        ),
      );
    }

    function onKeyDown(event: KeyboardEvent, id: string) {
      const side = MORE_KEYS[event.key];
      if (side && latest.current.nodes.find((node) => node.id === id)?.more?.[side]) {
        onMore(id, side);
      } else if (isArrowKey(event.key)) {
        event.preventDefault();
        const { rectangles: places, links } = latest.current;
        const next = places && findNeighbour(id, event.key, places, links);
        if (next) focusBox(next);
      } else if (event.key === "Escape") latest.current.onSelect?.(null);
    }

    function onMore(id: string, side: Side) {
      anchor.current = id;
      latest.current.onMore?.(id, side);
    }

    function onSelect(id: string) {
      anchor.current = id;
      setFocused(id);
      latest.current.onSelect?.(id);
    }

    /** The whole graph if it is readable then, else the part around what matters. */
    async function showAtFirst() {
      await flow.fitView(FIT);
      const { selected, focus } = latest.current;
      const id = selected ?? focus;
      const places = latest.current.rectangles;
      const place = id && places?.get(id);
      if (!places || !place || flow.getZoom() >= READABLE_ZOOM) return;
      flow.setViewport(frameAround(place, [...places.values()], store.getState(), READABLE_ZOOM));
    }

    return {
      actions: { direction: input.direction, onSelect, onMore, onKeyDown },
      focusable,
      fit: () => void flow.fitView(FIT),
      goTo: (id: string) => {
        centre(id);
        onSelect(id);
      },
      showAtFirst,
    };
  }, [flow, store, focusable, input.direction]);
}
