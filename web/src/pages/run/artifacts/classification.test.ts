import { expect, test } from "vitest";
import { accuracy, areaUnder, readConfusionMatrix, readRocCurve } from "./classification";

const MATRIX = {
  annotationSpecs: [{ displayName: "cat" }, { displayName: "dog" }],
  rows: [{ row: [8, 2] }, { row: [1, 9] }],
};

test.each([[MATRIX], [{ struct: MATRIX }]])("reads a confusion matrix", (confusionMatrix) => {
  const found = readConfusionMatrix({ confusionMatrix });
  expect(found).toEqual({
    names: ["cat", "dog"],
    rows: [
      [8, 2],
      [1, 9],
    ],
  });
  expect(found && accuracy(found)).toBeCloseTo(0.85);
});

test.each([
  [{}],
  [{ confusionMatrix: null }],
  [{ confusionMatrix: { annotationSpecs: [{}], rows: [{ row: [1, 2] }] } }],
  [{ confusionMatrix: { annotationSpecs: [{}], rows: [{ row: ["many"] }] } }],
  [{ confusionMatrix: { annotationSpecs: Array(100).fill({}), rows: Array(100).fill({}) } }],
])("shows no malformed matrix: %j", (metadata) => {
  expect(readConfusionMatrix(metadata as Record<string, unknown>)).toBeNull();
});

test("reads a ROC curve from the left, and its area", () => {
  const point = (confidenceThreshold: number, falsePositiveRate: number, recall: number) => ({
    confidenceThreshold,
    falsePositiveRate,
    recall,
  });
  const list = [point(0, 1, 1), point(0.5, 0.5, 1), point(1, 0, 0), point(2, 7, 0)];
  const found = readRocCurve({ confidenceMetrics: { list } });
  expect(found?.map(({ threshold }) => threshold)).toEqual([1, 0.5, 0]);
  expect(found && areaUnder(found)).toBeCloseTo(0.75);
  expect(readRocCurve({ confidenceMetrics: [point(0, 1, 1)] })).toBeNull();
  expect(readRocCurve({})).toBeNull();
});
