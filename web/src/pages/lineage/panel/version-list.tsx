import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import { count } from "@/components/format/count";
import { Time } from "@/components/format/time";
import type { Box } from "../graph-model";
import { startAt, type View } from "../view";

const SHOWN = 50;

export function useVersions(locator: string) {
  return useQuery({
    queryKey: ["lineage", "versions", locator],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/versions", { params: { query: { locator } }, signal })),
    select: ({ versions }) => versions.toReversed(),
  });
}

/** All recorded versions of the file, newest first. */
export function VersionList({
  box,
  locator,
  change,
}: {
  box: Box;
  locator: string;
  change: (change: (view: View) => View) => void;
}) {
  const { data } = useVersions(locator);
  if (!data || data.length < 2) return null;
  return (
    <details>
      <summary className="font-medium">{count(data.length, "version")} of this file</summary>
      <ul className="mt-1 max-h-60 overflow-y-auto">
        {data.slice(0, SHOWN).map((version) => (
          <li key={version.version} className="flex items-baseline gap-2 py-0.5">
            {version.version === box.id ? (
              <span className="font-medium">{version.execution}, this one</span>
            ) : (
              <button
                type="button"
                className="text-accent underline"
                onClick={() => change((now) => startAt(now, version.version))}
              >
                {version.execution}@{version.ordinal}
              </button>
            )}
            <span className="text-quiet">
              {version.found ? "found" : "made"} <Time at={version.at} />
            </span>
            <span className="ml-auto text-sm text-quiet">
              {version.digest === box.node?.digest ? "same content" : "different"}
            </span>
          </li>
        ))}
      </ul>
      {data.length > SHOWN && <p className="text-sm text-quiet">The newest {SHOWN} are shown.</p>}
    </details>
  );
}
