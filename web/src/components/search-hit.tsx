import { useQuery } from "@tanstack/react-query";
import { useDeferredValue } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { describeKind } from "./kinds";

export type Hit = Schemas["Hit"];

const SHORTEST = 2;

/** What the server finds for what the user types: files, objects, executions, runs, processes, … */
export function useSearch(text: string, limit: number) {
  const query = useDeferredValue(text.trim());
  const { data, error, isFetching } = useQuery({
    queryKey: ["executions", "search", query, limit],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/search", { params: { query: { q: query, limit } }, signal })),
    enabled: query.length >= SHORTEST,
    placeholderData: (previous) => previous,
  });
  const isLongEnough = query.length >= SHORTEST;
  return { hits: isLongEnough ? (data?.hits ?? []) : [], error, isFetching, isLongEnough };
}

/** One thing that a search found: what it is, what it is called, and where. */
export function SearchHit({ hit }: { hit: Hit }) {
  const kind = describeKind(hit.kind);
  const [directory, name] = splitPath(hit);
  return (
    <>
      <kind.icon size={16} aria-hidden className="shrink-0 text-quiet" />
      <span className="flex min-w-0 flex-1 flex-col leading-tight">
        <span className="truncate">{name}</span>
        <span className="truncate text-sm text-quiet">
          {[kind.label, directory].filter(Boolean).join(" · ")}
        </span>
      </span>
      <code className="shrink-0 text-sm text-quiet">{hit.execution ?? hit.id}</code>
    </>
  );
}

function splitPath({ label, by }: Hit): [directory: string, name: string] {
  if (by !== "path" && by !== "digest") return ["", label];
  const slash = label.lastIndexOf("/");
  return slash < 0 ? ["", label] : [label.slice(0, slash) || "/", label.slice(slash + 1)];
}
