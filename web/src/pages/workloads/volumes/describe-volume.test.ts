import { expect, test } from "vitest";
import type { NotebookItem, TensorboardItem, VolumeItem } from "../api/documents";
import { describeSize, sizeInBytes } from "./describe-volume";
import { findUsers } from "./volume-users";

test("sizes of different units compare", () => {
  const sizes = ["1Gi", "500Mi", "2G", "100", null];
  expect(sizes.toSorted((a, b) => sizeInBytes(a) - sizeInBytes(b))).toEqual([
    null,
    "100",
    "500Mi",
    "1Gi",
    "2G",
  ]);
  expect(describeSize("10Gi")).toBe("10 GiB");
});

test("notebooks and TensorBoards use a volume", () => {
  const volume = { name: "data", notebooks: ["one", "two"] } as VolumeItem;
  const status = (phase: string) => ({ phase, message: "", state: "" });
  const notebooks = [
    { name: "one", status: status("ready") },
    { name: "two", status: status("stopped") },
    { name: "three", status: status("ready") },
  ] as NotebookItem[];
  const boards = [
    { name: "four", logspath: "pvc://data/logs", status: status("ready") },
    { name: "five", logspath: "pvc://other", status: status("ready") },
  ] as TensorboardItem[];
  expect(findUsers(volume, notebooks, boards)).toEqual([
    { kind: "notebooks", name: "one", running: true },
    { kind: "notebooks", name: "two", running: false },
    { kind: "tensorboards", name: "four", running: true },
  ]);
});
