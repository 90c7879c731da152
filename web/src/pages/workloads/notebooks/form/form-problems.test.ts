import { expect, test } from "vitest";
import { findProblems } from "./form-problems";
import { defaultForm, type NotebookForm, newVariable } from "./form-state";
import { newVolume } from "./volume-choice";

const FORM: NotebookForm = { ...defaultForm({}, "mine"), cpu: "1", memory: "1" };
const NONE: ReadonlySet<string> = new Set();

test("a sound form has no problems", () => {
  const volumes = { workspace: newVolume(0), data: [newVolume(1), newVolume(2)] };
  const environment = [newVariable("MODE", ""), newVariable("_X.y-z", "1")];
  expect(findProblems({ ...FORM, ...volumes, environment }, NONE)).toEqual({});
});

test.each<[string, Partial<NotebookForm>, RegExp]>([
  ["name", { name: "" }, /Enter a name/],
  ["name", { name: "Mine" }, /small letters/],
  ["name", { name: "1st" }, /begin with a letter/],
  ["name", { name: "a".repeat(53) }, /at most 52/],
  ["name", { name: "taken" }, /is a notebook with this name/],
  ["cpu", { cpu: "none" }, /above 0/],
  ["cpu", { cpu: "0" }, /above 0/],
  ["memory", { memory: "-1" }, /above 0/],
  ["cpuLimit", { cpuLimit: "0.5" }, /less than/],
  ["image", { customImage: " " }, /Name an image/],
  ["idleMinutes", { idleMinutes: "soon" }, /minutes/],
])("%s: %o", (field, change, problem) => {
  const found = findProblems({ ...FORM, ...change }, new Set(["taken"]));
  expect(found[field]).toMatch(problem);
});

test("variables need names that differ", () => {
  const [bad, one, two] = [newVariable("A B"), newVariable("A"), newVariable("A")];
  const found = findProblems({ ...FORM, environment: [bad, one, two] }, NONE);
  expect(Object.keys(found).sort()).toEqual([bad.key, two.key].sort());
});

test.each([
  [{ source: "existing" as const, name: "" }, /Choose a volume/],
  [{ source: "snapshot" as const }, /Choose a snapshot/],
  [{ name: "Data" }, /small letters/],
  [{ size: "0" }, /size/],
  [{ mount: "data" }, /absolute path/],
  [{ mount: "/home/../etc" }, /absolute path/],
])("a volume with %o", (change, problem) => {
  const volume = { ...newVolume(0), ...change };
  expect(findProblems({ ...FORM, data: [volume] }, NONE)[volume.key]).toMatch(problem);
});

test("two volumes cannot have one path", () => {
  const [one, two] = [newVolume(0), { ...newVolume(1), mount: `${newVolume(0).mount}/` }];
  const found = findProblems({ ...FORM, data: [one, two] }, NONE);
  expect(found).toEqual({ [two.key]: "Two volumes have the same path." });
});
