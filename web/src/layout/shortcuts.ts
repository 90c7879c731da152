import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { ENTRIES } from "./navigation";

const PREFIX_MILLISECONDS = 1000;

/** Whether the keys that the user types belong to a form control. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName))
  );
}

/** The shortcuts of the whole app: search, help, `/` for the filter, and `g` + key for a page. */
export function useShortcuts({
  onSearch,
  onHelp,
}: {
  onSearch: () => void;
  onHelp: () => void;
}): void {
  const navigate = useNavigate();
  const prefixedAt = useRef(0);
  useEffect(() => {
    function handle(event: KeyboardEvent) {
      if (event.key.toLowerCase() === "k" && (event.metaKey || event.ctrlKey)) {
        event.preventDefault();
        onSearch();
        return;
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
      const prefixed = Date.now() - prefixedAt.current < PREFIX_MILLISECONDS;
      prefixedAt.current = event.key === "g" ? Date.now() : 0;
      const entry = prefixed && ENTRIES.find(({ key }) => key === event.key);
      if (entry) navigate({ to: entry.to });
      else if (event.key === "?") onHelp();
      else if (event.key === "/") {
        const filter = document.querySelector<HTMLElement>("[data-filter]");
        if (filter) {
          event.preventDefault();
          filter.focus();
        }
      }
    }
    window.addEventListener("keydown", handle);
    return () => window.removeEventListener("keydown", handle);
  }, [navigate, onSearch, onHelp]);
}
