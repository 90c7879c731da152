import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";

/** A part of a form that opens on demand; `summary` says what it contains while it is closed. */
export function Disclosure({
  title,
  summary,
  open = false,
  children,
}: {
  title: string;
  summary: string;
  open?: boolean;
  children: ReactNode;
}) {
  return (
    <details
      open={open || undefined}
      className="group min-w-0 rounded-lg border border-line bg-surface open:pb-4"
    >
      <summary className="flex min-h-11 list-none items-center gap-2 px-4 py-2 hover:bg-sunken group-open:mb-3 [&::-webkit-details-marker]:hidden">
        <ChevronRight
          size={16}
          aria-hidden
          className="shrink-0 text-quiet transition-transform group-open:rotate-90"
        />
        <span className="font-semibold">{title}</span>
        <span className="min-w-0 flex-1 truncate text-right text-quiet">{summary}</span>
      </summary>
      <div className="flex flex-col gap-4 px-4">{children}</div>
    </details>
  );
}
