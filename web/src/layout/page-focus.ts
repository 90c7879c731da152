import { useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

/**
 * Move the focus to the content of a page that was opened from outside it, by a link of the
 * navigation or a shortcut: the next Tab continues there, and a screen reader begins to read there.
 * A focus inside the content, such as that of a tab which changes the address, stays.
 */
export function usePageFocus(): void {
  const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  const previous = useRef<string | undefined>(undefined);
  useEffect(() => {
    const opened = previous.current !== undefined && previous.current !== path;
    previous.current = path;
    if (!opened) return;
    const frame = requestAnimationFrame(() => {
      const content = document.getElementById("content");
      const focused = document.activeElement;
      if (!content?.contains(focused) && !focused?.closest("[role=dialog]")) {
        content?.focus({ preventScroll: true });
      }
    });
    return () => cancelAnimationFrame(frame);
  }, [path]);
}
