import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { invalidateChanged } from "./changes";

test("refetches the queries of changed topics only", () => {
  const client = new QueryClient();
  for (const key of ["runs", "activities", "workloads"]) client.setQueryData([key], {});
  invalidateChanged(client, { runs: 1, workloads: 5 }, { runs: 2, workloads: 5 });
  const stale = (key: string) => client.getQueryState([key])?.isInvalidated;
  expect(stale("runs")).toBe(true);
  expect(stale("activities")).toBe(true);
  expect(stale("workloads")).toBe(false);
});
