import { type RefObject, useEffect, useRef } from "react";
import { isTyping } from "@/layout/shortcuts";

const STEPS: Record<string, number> = {
  j: 1,
  ArrowDown: 1,
  k: -1,
  ArrowUp: -1,
  PageDown: 15,
  PageUp: -15,
};
const ACTIONS = ["Enter", "x", "c"];

interface Options {
  scroller: RefObject<HTMLElement | null>;
  /** The position of the row that has the focus, or gets it next. */
  active: number;
  length: number;
  move: (position: number) => void;
  act: (key: string) => void;
}

/**
 * `j`, `k`, arrows, Home and End move between rows, Enter opens, `x` selects, `c` compares. Letters
 * work wherever the focus is, except in a form control or a dialog.
 */
export function useTableKeys(options: Options): void {
  const latest = useRef(options);
  latest.current = options;
  // The focus follows a moment later, when the row is drawn: the next key may come before that.
  const started = useRef(false);
  useEffect(() => {
    function handle(event: KeyboardEvent) {
      const { scroller, active, length, move, act } = latest.current;
      const { key, target } = event;
      if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
      if (isTextField(target) || !length) return;
      if (target instanceof Element && target.closest("[role=dialog], [role=menu]")) return;
      const onRow = target instanceof Element && target.matches("[data-row]");
      const onPage =
        target === document.body || (target instanceof Element && target.id === "content");
      const isLetter = key.length === 1;
      if (!onRow && !(onPage && isLetter) && !(isLetter && inside(scroller.current, target)))
        return;
      let next: number | null = null;
      if (key === "Home") next = 0;
      else if (key === "End") next = length - 1;
      else if (key in STEPS)
        next = onRow || started.current ? active + (STEPS[key] as number) : active;
      if (next !== null) {
        event.preventDefault();
        next = Math.min(length - 1, Math.max(0, next));
        started.current = true;
        move(next);
        focusRow(scroller.current, next);
      } else if (ACTIONS.includes(key)) {
        if (key === "x" && !onRow && !started.current && !inside(scroller.current, target)) return;
        event.preventDefault();
        act(key);
      }
    }
    window.addEventListener("keydown", handle);
    return () => window.removeEventListener("keydown", handle);
  }, []);
}

/** Checkboxes are form controls, but letters mean nothing to them. */
function isTextField(target: EventTarget | null): boolean {
  return isTyping(target) && !(target instanceof HTMLInputElement && target.type === "checkbox");
}

function inside(parent: HTMLElement | null, target: EventTarget | null): boolean {
  return target instanceof Node && Boolean(parent?.contains(target));
}

/** The row may have to be drawn first. */
export function focusRow(scroller: HTMLElement | null, position: number, tries = 5): void {
  requestAnimationFrame(() => {
    const row = scroller?.querySelector<HTMLElement>(`[data-row="${position}"]`);
    if (row) row.focus({ preventScroll: true });
    else if (tries > 0) focusRow(scroller, position, tries - 1);
  });
}
