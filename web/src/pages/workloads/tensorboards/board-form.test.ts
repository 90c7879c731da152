import { expect, test } from "vitest";
import { boardBody, findProblems, initialBoard } from "./board-form";
import { describeLogs, readLogPlace } from "./log-place";

const NONE: ReadonlySet<string> = new Set();

test("a link fills in the form", () => {
  const form = initialBoard({ logspath: "pvc://data/runs/a" }, "tensorboard-1", false);
  expect(form).toMatchObject({ source: "volume", volume: "data", path: "runs/a" });
  expect(boardBody(form)).toMatchObject({ name: "tensorboard-1", logspath: "pvc://data/runs/a" });
  expect(initialBoard({ logspath: "s3://b/x" }, "t", false)).toMatchObject({
    source: "bucket",
    address: "s3://b/x",
  });
  expect(initialBoard({ run: "e5" }, "t", true)).toMatchObject({ source: "run", run: "e5" });
  expect(initialBoard({}, "t", true).volume).toBe("project");
});

test.each([
  [{ volume: "" }, "volume"],
  [{ path: "a/../../b" }, "path"],
  [{ source: "bucket" as const, address: "bucket/path" }, "address"],
  [{ source: "run" as const }, "run"],
  [{ name: "taken" }, "name"],
])("%o is not accepted", (change, field) => {
  const form = { ...initialBoard({ volume: "data" }, "board", false), ...change };
  expect(Object.keys(findProblems(form, new Set(["taken"])))).toEqual([field]);
});

test("slashes around a path do not matter", () => {
  const form = { ...initialBoard({ volume: "data" }, "board", false), path: " /runs/ " };
  expect(findProblems(form, NONE)).toEqual({});
  expect(boardBody(form)).toMatchObject({ logspath: "pvc://data/runs" });
});

test("places of logs are described", () => {
  expect(describeLogs("pvc://data/runs/a")).toBe("volume data: runs/a");
  expect(describeLogs("gs://b/x")).toBe("gs://b/x");
  expect(readLogPlace("s3://b")).toBeNull();
});
