import { useEffect, useRef, useState } from "react";
import { announce } from "./overlays/announcements";

const SHOWN_MILLISECONDS = 1500;

/**
 * Put text on the clipboard; whether it is there. Where the app comes over plain HTTP from another
 * machine, browsers offer no `navigator.clipboard`: then the text is selected and copied as a user
 * would do it.
 */
export async function copyText(text: string): Promise<boolean> {
  if (!navigator.clipboard) return copySelected(text);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text); // the browser forbids it, for example in a window without focus
  }
}

/** The selection needs no focus, which a dialog would take back. */
function copySelected(text: string): boolean {
  const selection = window.getSelection();
  if (!selection) return false;
  const before = Array.from({ length: selection.rangeCount }, (_, at) => selection.getRangeAt(at));
  const holder = document.createElement("pre");
  holder.textContent = text;
  holder.ariaHidden = "true";
  // Not `hidden`: what is not drawn cannot be selected.
  holder.style.cssText = "position: fixed; inset: 0 auto auto 0; clip-path: inset(50%)";
  holder.style.userSelect = "text";
  function copyPlain(event: ClipboardEvent) {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    event.stopPropagation();
  }
  document.addEventListener("copy", copyPlain, { capture: true });
  document.body.append(holder);
  try {
    selection.selectAllChildren(holder);
    return document.execCommand("copy");
  } finally {
    document.removeEventListener("copy", copyPlain, { capture: true });
    holder.remove();
    selection.removeAllRanges();
    for (const range of before) selection.addRange(range);
  }
}

/** Copy text and say so over the page, where nothing else shows it. `what`: "The uid". */
export async function copyAndAnnounce(text: string, what: string): Promise<void> {
  if (await copyText(text)) announce(`${what} was copied`);
  else announceFailure();
}

/** A function that copies text, and whether it has just done so, for a button to show. */
export function useCopy(): [boolean, (text: string) => Promise<void>] {
  const [copied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  async function copy(text: string) {
    if (!(await copyText(text))) {
      announceFailure();
      return;
    }
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), SHOWN_MILLISECONDS);
  }
  return [copied, copy];
}

function announceFailure() {
  announce("The browser refused to copy. Select the text and press Ctrl+C.", "failure");
}
