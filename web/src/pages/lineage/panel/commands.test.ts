import { describe, expect, it, test } from "vitest";
import type { Box } from "../graph-model";
import { findLogFolder, isLeftByPods, isOfCluster, listCommands } from "./commands";

function box(id: string, node: Partial<NonNullable<Box["node"]>>): Box {
  return { id, node: { id, kind: "", label: id, ...node } } as Box;
}

const POD = box("e7.ab", { namespace: "ml", pod: "ml/train", execution: "e7", command: [] });
const OBJECT = box("e7:s3://lake/a b", { version: "e7:s3://lake/a b", locator: "s3://lake/a b" });
const IMAGE = box("e7:image://x", { version: "e7:image://x", locator: "image://x" });
const FILE = box("e1:a", { version: "e1:a", locator: "file://m/a", stored: true });
const PROCESS = box("e1.p1", { execution: "e1", command: ["ls"] });

const commands = (of: Box, asOf?: string) => listCommands(of, asOf).map((one) => one.command);

describe("what a user can type", () => {
  it("reproduces what Pods made, and never repeats it", () => {
    for (const of of [POD, OBJECT]) {
      expect(isOfCluster(of) && isLeftByPods(of)).toBe(true);
      expect(commands(of).join("\n")).not.toMatch(/repeat|recreate/);
    }
    expect(commands(POD, "2026-11-19")).toContain(
      "clew reproduce e7.ab --as-of 2026-11-19 --dry-run",
    );
    expect(commands(OBJECT)).toContain("clew reproduce 'e7:s3://lake/a b'");
  });

  it("reproduces no image", () => {
    expect(isLeftByPods(IMAGE)).toBe(false);
    expect(commands(IMAGE)).toEqual(["clew trace e7:image://x", "clew trace e7:image://x --down"]);
  });

  it("repeats and recreates what a command made", () => {
    expect(commands(PROCESS)).toContain("clew repeat e1");
    expect(commands(FILE)).toContain("clew recreate e1:a --dry-run");
  });
});

test("a TensorBoard shows the folder of logs in a bucket", () => {
  const log = box("e7:log", { locator: "s3://lake/runs/7/events.out.tfevents.1.host" });
  expect(findLogFolder(log)).toBe("s3://lake/runs/7");
  expect(findLogFolder(OBJECT)).toBeNull();
  expect(findLogFolder(FILE)).toBeNull();
});
