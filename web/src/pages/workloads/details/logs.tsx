import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDownToLine, Download } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Button } from "@/components/button";
import { EmptyState } from "@/components/feedback";
import { Select } from "@/components/fields/field";
import type { Workload } from "../api/documents";
import type { Openable } from "../common/open-path";
import { logPath, useLog } from "./use-log";

const LINE_HEIGHT = 20;
const OVERSCAN = 30;
const NEAR_END = 40;

/** The live logs of the containers of a resource. */
export function Logs({
  workload,
  collection,
  container,
  onContainer,
}: {
  workload: Workload;
  collection: Openable;
  container: string | undefined;
  onContainer: (container: string) => void;
}) {
  const names = workload.containers.map(({ name }) => name);
  const shown = container ?? (names.includes(workload.name) ? workload.name : names[0]);
  if (shown === undefined) {
    return (
      <EmptyState title="There is no log yet">
        {workload.phase === "stopped" ? "It is stopped: start it." : workload.message}
      </EmptyState>
    );
  }
  const path = logPath(collection, workload.namespace, workload.name, shown);
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-2">
        {workload.containers.length > 1 && (
          <div className="w-56">
            <Select
              aria-label="Container"
              value={shown}
              onChange={(event) => onContainer(event.target.value)}
            >
              {workload.containers.map(({ name, state }) => (
                <option key={name} value={name}>
                  {name} ({state})
                </option>
              ))}
            </Select>
          </div>
        )}
        <a
          href={path}
          download={`${workload.name}.log`}
          className="inline-flex min-h-8 items-center gap-1.5 rounded-md border border-line bg-surface px-3 font-medium hover:bg-sunken"
        >
          <Download size={15} aria-hidden /> Download
        </a>
      </div>
      <LogLines key={path} path={path} />
    </div>
  );
}

function LogLines({ path }: { path: string }) {
  const { log, ended, failed } = useLog(path);
  const scroller = useRef<HTMLDivElement>(null);
  const [following, setFollowing] = useState(true);
  const lines = log.lines.at(-1) === "" ? log.lines.slice(0, -1) : log.lines;
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: OVERSCAN,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: with every change of the log
  useEffect(() => {
    const element = scroller.current;
    if (following && element) element.scrollTop = element.scrollHeight;
  }, [following, log]);
  return (
    <div className="relative min-w-0">
      <div
        ref={scroller}
        role="log"
        aria-label="Log"
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: so that the keyboard can scroll it
        tabIndex={0}
        className="h-[60vh] min-h-48 overflow-auto rounded-lg border border-line bg-surface p-3 font-mono text-[0.93rem]"
        onScroll={({ currentTarget: at }) =>
          setFollowing(at.scrollHeight - at.scrollTop - at.clientHeight < NEAR_END)
        }
      >
        {log.dropped > 0 && (
          <p className="text-quiet">{log.dropped} earlier lines are in the file.</p>
        )}
        <div className="relative min-w-max" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => (
            <div
              key={item.key}
              className="absolute left-0 whitespace-pre"
              style={{ top: item.start, height: LINE_HEIGHT, lineHeight: `${LINE_HEIGHT}px` }}
            >
              {lines[item.index]}
            </div>
          ))}
        </div>
      </div>
      {!following && (
        <Button className="absolute right-4 bottom-4 shadow" onClick={() => setFollowing(true)}>
          <ArrowDownToLine size={15} aria-hidden /> Follow
        </Button>
      )}
      <p role="status" className="mt-2 text-quiet">
        {failed
          ? "The log cannot be read now. Reload the page to try again."
          : ended
            ? "The log ends here: it does not run any more."
            : lines.length === 0
              ? "Nothing was printed yet."
              : "New lines appear as they are printed."}
      </p>
    </div>
  );
}
