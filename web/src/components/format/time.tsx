const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** `5 minutes ago`; `just now` within a minute. */
export function formatRelative(at: Date, now: Date = new Date()): string {
  const seconds = (at.getTime() - now.getTime()) / 1000;
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return RELATIVE.format(Math.round(seconds / length), unit);
  }
  return "just now";
}

/** `850 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const TIMES_KEY = "clew-times";

/** Whether exact times are in UTC, as on the command line, or in the zone of the browser. */
export type Zone = "local" | "utc";

export function currentZone(): Zone {
  return localStorage.getItem(TIMES_KEY) === "utc" ? "utc" : "local";
}

/** Keep the choice for the next visit. Pages show it when they are drawn next. */
export function applyZone(zone: Zone): void {
  localStorage.setItem(TIMES_KEY, zone);
}

/** An exact time: `14 Mar 2026, 09:26:53 UTC`. */
export function formatExact(at: Date, zone: Zone = currentZone()): string {
  return at.toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZone: zone === "utc" ? "UTC" : undefined,
    timeZoneName: "short",
  });
}

/** A time, relative to now; the exact one on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span className="text-quiet">–</span>;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{at}</span>;
  return (
    <time dateTime={date.toISOString()} title={formatExact(date)} className="whitespace-nowrap">
      {formatRelative(date)}
    </time>
  );
}

export function Duration({ seconds }: { seconds: number | null | undefined }) {
  if (seconds === null || seconds === undefined) return <span className="text-quiet">–</span>;
  return <span className="whitespace-nowrap tabular-nums">{formatSeconds(seconds)}</span>;
}
