import type { ReactNode } from "react";

/** Facts of a resource: names and values. */
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="grid gap-x-8 gap-y-3 sm:grid-cols-[max-content_1fr]">
      {facts.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-quiet">{name}</dt>
          <dd className="min-w-0 break-words max-sm:-mt-3">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
