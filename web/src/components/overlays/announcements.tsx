import { CircleCheck, Info, TriangleAlert, X } from "lucide-react";
import { useEffect, useSyncExternalStore } from "react";
import { IconButton } from "../button";

type Tone = "success" | "info" | "failure";

interface Announcement {
  id: number;
  text: string;
  tone: Tone;
}

const SHOWN_MILLISECONDS = 6000;
const MAX_SHOWN = 4;
const ICONS = { success: CircleCheck, info: Info, failure: TriangleAlert };
const COLOURS = { success: "text-success", info: "text-accent", failure: "text-failure" };

let shown: Announcement[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function show(next: Announcement[]): void {
  shown = next;
  for (const listener of listeners) listener();
}

/**
 * Say briefly, over the page and to screen readers, that something has been done: `announce("Run
 * r3 was started")`. What needs the user's attention belongs on the page itself, in an ErrorCard.
 */
export function announce(text: string, tone: Tone = "success"): void {
  lastId += 1;
  show([...shown, { id: lastId, text, tone }].slice(-MAX_SHOWN));
}

function dismiss(id: number): void {
  show(shown.filter((one) => one.id !== id));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The announcements, at the bottom of the window. A failure stays until it is dismissed. */
export function Announcements() {
  const announcements = useSyncExternalStore(subscribe, () => shown);
  return (
    <div
      role="status"
      aria-live="polite"
      className="pointer-events-none fixed right-0 bottom-0 z-[60] flex max-w-full flex-col items-end gap-2 p-4"
    >
      {announcements.map((one) => (
        <Toast key={one.id} {...one} />
      ))}
    </div>
  );
}

function Toast({ id, text, tone }: Announcement) {
  useEffect(() => {
    if (tone === "failure") return;
    const timer = setTimeout(() => dismiss(id), SHOWN_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [id, tone]);
  const Icon = ICONS[tone];
  return (
    <div className="pointer-events-auto flex max-w-md items-start gap-2 rounded-lg border border-line bg-raised py-1.5 pr-1.5 pl-3 shadow-lg">
      <Icon size={17} aria-hidden className={`mt-1.5 shrink-0 ${COLOURS[tone]}`} />
      <p className="min-w-0 py-1 break-words">{text}</p>
      <IconButton label="Dismiss" className="px-1.5" onClick={() => dismiss(id)}>
        <X size={14} aria-hidden />
      </IconButton>
    </div>
  );
}
