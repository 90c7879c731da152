import type { NotebookItem } from "../api/documents";

/** `0.5 CPU · 1 GiB · 1 NVIDIA`. */
export function describeResources({
  cpu,
  memory,
  gpus,
}: Pick<NotebookItem, "cpu" | "memory" | "gpus">): string {
  return (
    [cpu && `${cpu} CPU`, memory && formatQuantity(memory), gpus.message]
      .filter(Boolean)
      .join(" · ") || "–"
  );
}

/** `4Gi` as `4 GiB`; other units stay readable, too. */
export function formatQuantity(quantity: string): string {
  const found = /^([\d.]+)([KMGTP]i?)$/.exec(quantity);
  return found ? `${found[1]} ${found[2]}B` : quantity;
}

export function formatMinutes(minutes: number): string {
  if (minutes >= 60 && minutes % 60 === 0) {
    return minutes === 60 ? "1 hour" : `${minutes / 60} hours`;
  }
  return minutes === 1 ? "1 minute" : `${minutes} minutes`;
}
