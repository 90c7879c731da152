import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { fetchJson, request } from "@/api/client";
import { blocksOf, joinIndex, type LogIndex, splitLines } from "./blocks";

const POLL_MILLISECONDS = 800;
const KEPT_MILLISECONDS = 60_000;

/** Where the lines of a log are; asked again while it grows. `base`: the address of the log. */
export function useLogIndex(base: string) {
  const client = useQueryClient();
  const queryKey = ["log", base];
  return useQuery({
    queryKey,
    queryFn: async () => {
      const before = client.getQueryData<LogIndex>(queryKey);
      const first = Math.max(0, (before?.blocks.length ?? 0) - 1);
      const found = await fetchJson<LogIndex>(`${base}/lines?from=${first}`);
      if (first && found.attempt !== before?.attempt) return fetchJson<LogIndex>(`${base}/lines`);
      return joinIndex(before, found, first);
    },
    refetchInterval: ({ state }) => (state.data?.complete === false ? POLL_MILLISECONDS : false),
    staleTime: 0,
  });
}

/** The texts of the lines from `first` to before `end`, as far as they are loaded. */
export function useLines(
  base: string,
  index: LogIndex | undefined,
  first: number,
  end: number,
): (line: number) => string | undefined {
  const numbers = index ? blocksOf(index.blocks, first, end) : [];
  const attempt = index?.attempt ?? "";
  // The last block is loaded again when it has grown; meanwhile what it had is shown.
  const last = (index?.blocks.length ?? 0) - 1;
  const known = useRef(new Map<string, string[]>());
  return useQueries({
    queries: numbers.map((number) => ({
      queryKey: ["log-block", base, attempt, number, number === last ? index?.size : "closed"],
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const query = attempt ? `?attempt=${attempt}` : "";
        const url = new URL(`${base}/blocks/${number}${query}`, window.location.origin);
        const response = await request(new Request(url, { signal }));
        return splitLines(await response.text());
      },
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: KEPT_MILLISECONDS,
    })),
    combine: (results) => {
      const before = known.current;
      const loaded = new Map<string, string[]>();
      results.forEach(({ data }, at) => {
        const id = `${base} ${attempt} ${numbers[at]}`;
        const lines = data ?? before.get(id);
        if (lines) loaded.set(id, lines);
      });
      known.current = loaded;
      return (line: number) => {
        if (!index) return undefined;
        const number = blocksOf(index.blocks, line, line + 1)[0] ?? 0;
        const start = index.blocks[number]?.[0] ?? 0;
        return loaded.get(`${base} ${attempt} ${number}`)?.[line - start];
      };
    },
  });
}

/** The lines that contain a text. */
export function useMatches(base: string, find: string, index: LogIndex | undefined) {
  return useQuery({
    queryKey: ["log-matches", base, index?.attempt, find, index?.size],
    queryFn: async ({ signal }) => {
      const lines: number[] = [];
      let from: number | null = 0;
      while (from !== null && lines.length < MOST_MATCHES) {
        const query: string = new URLSearchParams({ q: find, from: String(from) }).toString();
        const found: { lines: number[]; next_block: number | null } = await fetchJson(
          `${base}/matches?${query}`,
          { signal },
        );
        lines.push(...found.lines);
        from = found.next_block;
      }
      return { lines, complete: from === null };
    },
    enabled: Boolean(find && index),
    placeholderData: (before, query) => (query?.queryKey[3] === find ? before : undefined),
  });
}

const MOST_MATCHES = 100_000;
