import { expect, test } from "vitest";
import { listRepeats, type Relative } from "./repeat-list";
import type { RepeatRequest } from "./use-repeats";

const options = { parameters: { "2": "0.5" }, incremental: true, network: false, gpu: false };
const request = (id: string, created: string) =>
  ({ id, created, state: "done", verdict: "identical", options }) as unknown as RepeatRequest;
const relative = (uid: string, how: string, started: string) =>
  ({ uid, id: `e${uid}`, how, started }) as Relative;

test("one list, newest first, each repeat once", () => {
  const found = listRepeats(
    [request("2", "2026-01-02T00:00:00Z")],
    [
      relative("1", "repetition", "2026-01-01T00:00:00Z"),
      relative("2", "repetition", "2026-01-02T00:00:01Z"),
      relative("3", "modification", "2026-01-03T00:00:00Z"),
      relative("4", "file", "2026-01-04T00:00:00Z"),
    ],
  );
  expect(found.map(({ id, state, about }) => [id, state, about])).toEqual([
    ["3", "done", "e3, recorded elsewhere, with changes"],
    ["2", "identical", "e2, word 2: 0.5, incremental"],
    ["1", "done", "e1, recorded elsewhere"],
  ]);
});
