import { expect, test } from "vitest";
import { ENTRIES, isEntryOf } from "./navigation";

test.each([
  ["/", "Home"],
  ["/runs", "Runs"],
  ["/runs/e4", "Runs"],
  ["/compare", "Runs"],
  ["/pipelines/start", "Pipelines"],
  ["/schedules", "Pipelines"],
  ["/experiments", "Pipelines"],
  ["/settings/tokens", "Settings"],
])("%s is marked as a page of %s", (path, label) => {
  const marked = ENTRIES.filter((entry) => isEntryOf(entry, path));
  expect(marked.map((entry) => entry.label)).toEqual([label]);
});
