import { expect, test } from "vitest";
import { distinguish } from "./entry-names";

test("entries of the same name are told apart by their ids", () => {
  const entries = [
    { id: "r1", name: "taxi-tips" },
    { id: "r2", name: "taxi-tips" },
    { id: "r3", name: "slower" },
    { id: "e1", name: null },
    { id: "e2", name: null },
  ];
  const names = distinguish(entries).map(({ name }) => name);
  expect(names).toEqual(["taxi-tips r1", "taxi-tips r2", "slower", null, null]);
});
