import { classes } from "./classes";

const NEARLY_FULL = 0.9;

/** How much of something is used: a bar with its numbers in words. */
export function Meter({ label, detail, share }: { label: string; detail: string; share: number }) {
  const percent = Math.round(100 * Math.min(1, Math.max(0, share)));
  return (
    <div>
      <p className="flex flex-wrap justify-between gap-x-3">
        <span>{label}</span>
        <span className="text-quiet">{detail}</span>
      </p>
      <div
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent}
        aria-valuetext={`${detail}: ${percent} %`}
        className="mt-1 h-2 overflow-hidden rounded-full bg-sunken"
      >
        <div
          className={classes("h-full", share >= NEARLY_FULL ? "bg-warning" : "bg-accent")}
          style={{ width: `${percent}%` }}
        />
      </div>
    </div>
  );
}
