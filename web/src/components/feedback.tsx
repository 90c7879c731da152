import { TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { ApiError } from "@/api/client";
import { Button } from "./button";
import { Command } from "./copy";

/** What a page shows before it has anything: what belongs here, and the command that makes it. */
export function EmptyState({
  title,
  children,
  command,
  action,
}: {
  title: string;
  children?: ReactNode;
  command?: string;
  action?: ReactNode;
}) {
  return (
    <div className="flex flex-col items-center gap-3 rounded-lg border border-dashed border-line-strong px-4 py-10 text-center">
      <h2>{title}</h2>
      {children && <div className="max-w-prose text-quiet">{children}</div>}
      {command && <Command text={command} />}
      {action}
    </div>
  );
}

/** What went wrong and what to do, in the server's own words. */
export function ErrorCard({ error, retry }: { error: unknown; retry?: () => void }) {
  const known = error instanceof ApiError ? error : null;
  const message = known?.message ?? (error instanceof Error ? error.message : String(error));
  return (
    <div
      role="alert"
      className="flex flex-wrap items-start gap-3 rounded-lg border border-failure bg-failure-soft p-4"
    >
      <TriangleAlert aria-hidden className="mt-0.5 shrink-0 text-failure" size={18} />
      <div className="min-w-0 flex-1 break-words">
        <p className="font-medium">{message}</p>
        {known?.hint &&
          (known.hint.startsWith("clew ") ? (
            <div className="mt-1.5">
              <Command text={known.hint} />
            </div>
          ) : (
            <p className="text-quiet">{known.hint}</p>
          ))}
      </div>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** Grey bars in the place of content that is on its way. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-3">
      {Array.from({ length: lines }, (_, line) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: the bars are all alike
          key={line}
          className="h-5 animate-pulse rounded bg-line"
          style={{ width: `${90 - ((line * 17) % 40)}%` }}
        />
      ))}
    </div>
  );
}
