// biome-ignore-all lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
// biome-ignore-all lint/suspicious/noArrayIndexKey: these parts have no other name, and never move
import { ArrowDown, ArrowUp, Download, WrapText } from "lucide-react";
import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button, IconButton } from "@/components/button";
import { classes } from "@/components/classes";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Checkbox, Input } from "@/components/fields/field";
import { useRunSearch } from "../use-search";
import { markMatches, parseLine } from "./ansi";
import { LINE_HEIGHT, ScrollScale } from "./blocks";
import { useLines, useLogIndex, useMatches } from "./use-log";

/** Lines that are drawn above and below the window. */
const OVERSCAN = 10;
const SEARCH_DELAY = 250;
const PAGE_KEYS = ["PageDown", "PageUp", "Home", "End", "ArrowDown", "ArrowUp", " "];

/**
 * A log of any length: only the lines in the window are in the document, and only their blocks are
 * loaded. While it grows, the window stays at its end until the user scrolls up.
 */
export function LogViewer({
  base,
  download,
  label,
  empty,
}: {
  base: string;
  download?: string;
  label: string;
  empty: string;
}) {
  const [search, setSearch] = useRunSearch();
  const index = useLogIndex(base);
  const find = search.find ?? "";
  const matches = useMatches(base, find, index.data);
  const found = matches.data?.lines ?? [];
  const lines = index.data?.lines ?? 0;
  const [following, setFollowing] = useState(!search.line);
  const [at, setAt] = useState(-1);
  const isLive = index.data?.complete === false;

  function goTo(number: number) {
    const line = found[number];
    if (line === undefined) return;
    setAt(number);
    setFollowing(false);
    setSearch({ line: line + 1 }, true);
  }
  function step(by: number) {
    if (found.length) goTo((at + by + found.length) % found.length);
  }

  if (index.error) return <ErrorCard error={index.error} retry={() => index.refetch()} />;
  if (!index.data) return <Skeleton lines={8} />;
  return (
    <section
      aria-label={label}
      className="flex min-w-0 flex-col rounded-lg border border-line bg-surface"
    >
      <header className="flex flex-wrap items-center gap-2 border-b border-line p-2">
        <SearchField
          key={base}
          find={find}
          onFind={(text) => setSearch({ find: text }, true)}
          onStep={step}
        />
        {find && (
          <>
            <span role="status" className="text-quiet tabular-nums">
              {matches.isFetching && !matches.data
                ? "searching…"
                : found.length
                  ? `${at >= 0 ? `${at + 1} of ` : ""}${found.length.toLocaleString("en")}${matches.data?.complete ? "" : "+"}`
                  : "not found"}
            </span>
            <IconButton
              label="Previous match"
              className="px-1.5"
              disabled={!found.length}
              onClick={() => step(-1)}
            >
              <ArrowUp size={15} aria-hidden />
            </IconButton>
            <IconButton
              label="Next match"
              className="px-1.5"
              disabled={!found.length}
              onClick={() => step(1)}
            >
              <ArrowDown size={15} aria-hidden />
            </IconButton>
          </>
        )}
        <span className="ml-auto text-quiet tabular-nums">
          {lines.toLocaleString("en")} {lines === 1 ? "line" : "lines"}
        </span>
        {isLive && (
          <Checkbox
            label="Follow"
            checked={following}
            onChange={(event) => setFollowing(event.target.checked)}
          />
        )}
        <Button
          look="quiet"
          aria-pressed={search.wrap ?? false}
          className={search.wrap ? "bg-accent-soft text-accent" : undefined}
          onClick={() => setSearch({ wrap: search.wrap ? undefined : true }, true)}
        >
          <WrapText size={15} aria-hidden /> Wrap
        </Button>
        {download && lines > 0 && (
          <a
            href={download}
            download
            className="inline-flex min-h-8 items-center gap-1.5 rounded-md px-3 font-medium hover:bg-sunken"
          >
            <Download size={15} aria-hidden /> Download
          </a>
        )}
      </header>
      {lines === 0 ? (
        <p className="p-6 text-center text-quiet">
          {isLive ? "Nothing has been printed yet." : empty}
        </p>
      ) : (
        <Lines
          key={`${base} ${index.data.attempt}`}
          base={base}
          index={index.data}
          label={label}
          wrap={search.wrap ?? false}
          find={find}
          line={search.line}
          onLine={(line) => setSearch({ line }, true)}
          following={following && isLive}
          onFollow={setFollowing}
        />
      )}
    </section>
  );
}

function SearchField({
  find,
  onFind,
  onStep,
}: {
  find: string;
  onFind: (text: string | undefined) => void;
  onStep: (by: number) => void;
}) {
  const [text, setText] = useState(find);
  const latest = useRef(onFind);
  latest.current = onFind;
  useEffect(() => {
    if (text === find) return;
    const timer = setTimeout(() => latest.current(text || undefined), SEARCH_DELAY);
    return () => clearTimeout(timer);
  }, [text, find]);
  return (
    <div className="w-full max-w-56">
      <Input
        type="search"
        data-filter
        aria-label="Find in the log"
        placeholder="Find in the log"
        maxLength={200}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && onStep(event.shiftKey ? -1 : 1)}
      />
    </div>
  );
}

interface LinesProps {
  base: string;
  index: NonNullable<ReturnType<typeof useLogIndex>["data"]>;
  label: string;
  wrap: boolean;
  find: string;
  /** The line of the URL, from 1. */
  line: number | undefined;
  onLine: (line: number) => void;
  following: boolean;
  onFollow: (following: boolean) => void;
}

function Lines({ base, index, label, wrap, find, line, onLine, following, onFollow }: LinesProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState(480);
  const [top, setTop] = useState(0);
  const now = useRef(top);
  now.current = top;
  // Wrapped lines are higher: there is room to scroll until the last one is the first.
  const scale = new ScrollScale(
    index.lines + (wrap ? Math.floor(view / LINE_HEIGHT) - 1 : 0),
    view,
  );
  const first = Math.max(0, Math.floor(top / LINE_HEIGHT) - (wrap ? 0 : OVERSCAN));
  const end = Math.min(index.lines, Math.ceil((top + view) / LINE_HEIGHT) + OVERSCAN);
  const textOf = useLines(base, index, first, end);
  const target = useRef(-1);

  function scrollTo(wanted: number) {
    const element = scroller.current;
    if (!element) return;
    const next = Math.min(Math.max(0, wanted), scale.logHeight - view);
    target.current = Math.round(scale.toBar(next));
    element.scrollTop = scale.toBar(next);
    now.current = next;
    setTop(next);
  }
  const latest = useRef(scrollTo);
  latest.current = scrollTo;

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setView(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the end moves when lines are added
  useLayoutEffect(() => {
    if (following) latest.current(Number.POSITIVE_INFINITY);
  }, [following, index.lines, view, wrap]);
  useLayoutEffect(() => {
    if (line) latest.current((line - 1) * LINE_HEIGHT - 3 * LINE_HEIGHT);
  }, [line]);
  // A pixel of the bar may be many lines: the wheel moves the log, and the bar follows.
  const isCoarse = scale.isCoarse;
  useEffect(() => {
    const element = scroller.current;
    if (!element || !isCoarse) return;
    const onWheel = (event: WheelEvent) => {
      if (event.ctrlKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      event.preventDefault();
      const unit = event.deltaMode === 1 ? LINE_HEIGHT : 1;
      latest.current(now.current + event.deltaY * unit);
      if (event.deltaY < 0) onFollow(false);
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [isCoarse, onFollow]);

  function onScroll() {
    const element = scroller.current;
    if (!element) return;
    if (Math.abs(element.scrollTop - target.current) < 1) return; // our own
    target.current = -1;
    const next = scale.toLog(element.scrollTop);
    if (next < top - 1) onFollow(false);
    else if (next >= scale.logHeight - view - LINE_HEIGHT) onFollow(true);
    setTop(next);
  }

  const numbers = Array.from({ length: Math.max(0, end - first) }, (_, n) => first + n);
  const digits = String(index.lines).length;
  return (
    <div
      ref={scroller}
      role="log"
      aria-label={label}
      aria-live="off"
      tabIndex={0}
      data-log
      className="h-[60vh] min-h-48 overflow-auto bg-surface font-mono text-[0.86rem] focus-visible:-outline-offset-2"
      onScroll={onScroll}
      onKeyDown={(event) => {
        if (!isCoarse || event.target !== event.currentTarget || !PAGE_KEYS.includes(event.key))
          return;
        event.preventDefault();
        const page = view - LINE_HEIGHT;
        const moves: Record<string, number> = {
          PageDown: top + page,
          " ": top + page,
          PageUp: top - page,
          Home: 0,
          End: Number.POSITIVE_INFINITY,
          ArrowDown: top + LINE_HEIGHT,
          ArrowUp: top - LINE_HEIGHT,
        };
        onFollow(event.key === "End");
        scrollTo(moves[event.key] ?? top);
      }}
    >
      <div style={{ height: scale.height, minWidth: wrap ? undefined : "max-content" }}>
        <div className="sticky top-0" style={{ height: view, overflowY: "clip" }}>
          <ol style={{ transform: `translateY(${wrap ? 0 : first * LINE_HEIGHT - top}px)` }}>
            {numbers.map((number) => (
              <Line
                key={number}
                number={number}
                text={textOf(number)}
                wrap={wrap}
                find={find}
                digits={digits}
                isLinked={line === number + 1}
                onLine={onLine}
              />
            ))}
          </ol>
        </div>
      </div>
    </div>
  );
}

const Line = memo(function Line({
  number,
  text,
  wrap,
  find,
  digits,
  isLinked,
  onLine,
}: {
  number: number;
  text: string | undefined;
  wrap: boolean;
  find: string;
  digits: number;
  isLinked: boolean;
  onLine: (line: number) => void;
}) {
  const segments = text === undefined ? [] : markMatches(parseLine(text), find);
  return (
    <li
      className={classes("flex", isLinked && "bg-accent-soft")}
      style={{ [wrap ? "minHeight" : "height"]: LINE_HEIGHT, lineHeight: `${LINE_HEIGHT}px` }}
    >
      <button
        type="button"
        tabIndex={-1}
        aria-label={`Link to line ${number + 1}`}
        aria-current={isLinked || undefined}
        className="sticky left-0 shrink-0 bg-surface pr-3 pl-2 text-right text-quiet select-none hover:text-accent"
        style={{ width: `${digits + 3}ch` }}
        onClick={() => onLine(number + 1)}
      >
        {number + 1}
      </button>
      <span className={wrap ? "min-w-0 break-all whitespace-pre-wrap" : "pr-4 whitespace-pre"}>
        {text === undefined ? (
          <span className="text-quiet">…</span>
        ) : (
          segments.map((segment, at) =>
            "match" in segment && segment.match ? (
              <mark key={at} className="bg-warning-soft text-warning">
                {segment.text}
              </mark>
            ) : (
              <span key={at} className={segment.className}>
                {segment.text}
              </span>
            ),
          )
        )}
      </span>
    </li>
  );
});
