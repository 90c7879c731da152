import { expect, test } from "vitest";
import { findNeighbour } from "./neighbours";

const at = (x: number, y: number) => ({ x, y, width: 10, height: 10 });
const places = new Map([
  ["a", at(0, 0)],
  ["b", at(100, 0)],
  ["c", at(100, 80)],
  ["d", at(0, 80)],
]);
const links = [{ id: "a-c", source: "a", target: "c" }];

test("prefers what is linked", () => {
  expect(findNeighbour("a", "ArrowRight", places, links)).toBe("c");
  expect(findNeighbour("a", "ArrowRight", places, [])).toBe("b");
});

test("moves to the nearest in the direction, or stays", () => {
  expect(findNeighbour("a", "ArrowDown", places, [])).toBe("d");
  expect(findNeighbour("c", "ArrowLeft", places, [])).toBe("d");
  expect(findNeighbour("a", "ArrowUp", places, links)).toBeNull();
});
