import { expect, test } from "vitest";
import { translateHash } from "./hash-links";

test.each([
  ["#/runs/details/0b1c", "/runs/0b1c"],
  ["#/runs/details/0b1c?tab=logs", "/runs/0b1c"],
  ["#/experiments/details/7", "/experiments?experiment=7"],
  ["#/pipelines/details/p/version/v", "/pipelines/p?version=v"],
  ["#/pipelines/details/p", "/pipelines/p"],
  ["#/recurringrun/details/s", "/schedules?schedule=s"],
  ["#/recurringruns", "/schedules"],
  ["#/runs", "/runs"],
  ["#section", null],
  ["", null],
])("translates %s", (hash, page) => {
  expect(translateHash(hash)).toBe(page);
});
