/** Confusion matrices and ROC curves, as `ClassificationMetrics` of the kfp SDK keep them. */

export interface ConfusionMatrix {
  names: string[];
  /** Rows are true classes, columns are predicted ones. */
  rows: number[][];
}

export interface RocPoint {
  threshold: number;
  falsePositives: number;
  truePositives: number;
}

const MAX_CLASSES = 60;
const MAX_POINTS = 5000;

type Fields = Record<string, unknown>;

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

/** Some versions of the SDK wrap values in `struct` or `list`. */
function unwrapped(value: unknown): unknown {
  const { struct, list } = fields(value);
  return struct ?? list ?? value;
}

function list(value: unknown): unknown[] {
  const found = unwrapped(value);
  return Array.isArray(found) ? found : [];
}

/** The confusion matrix of an artifact's metadata; null if there is none, or if it is malformed. */
export function readConfusionMatrix(metadata: Fields): ConfusionMatrix | null {
  const found = fields(unwrapped(metadata.confusionMatrix));
  const names = list(found.annotationSpecs).map((spec) => String(fields(spec).displayName ?? ""));
  const rows = list(found.rows).map((row) => list(fields(row).row ?? row).map(Number));
  const isSquare = rows.length === names.length && rows.every((row) => row.length === names.length);
  const isSmall = names.length > 0 && names.length <= MAX_CLASSES;
  return isSquare && isSmall && rows.flat().every(Number.isFinite) ? { names, rows } : null;
}

/** The points of the ROC curve, from the left; null if there is none. */
export function readRocCurve(metadata: Fields): RocPoint[] | null {
  const points = list(metadata.confidenceMetrics)
    .slice(0, MAX_POINTS)
    .map((point) => {
      const found = fields(point);
      return {
        threshold: Number(found.confidenceThreshold),
        falsePositives: Number(found.falsePositiveRate),
        truePositives: Number(found.recall),
      };
    })
    .filter((point) => [point.falsePositives, point.truePositives].every(isRate));
  points.sort((a, b) => a.falsePositives - b.falsePositives || a.truePositives - b.truePositives);
  return points.length > 1 ? points : null;
}

function isRate(value: number): boolean {
  return value >= 0 && value <= 1;
}

/** The area under the curve, by trapezoids. */
export function areaUnder(points: RocPoint[]): number {
  return points.slice(1).reduce((area, point, at) => {
    const before = points[at] as RocPoint;
    const width = point.falsePositives - before.falsePositives;
    return area + (width * (point.truePositives + before.truePositives)) / 2;
  }, 0);
}

/** The part of all that are on the diagonal. */
export function accuracy({ rows }: ConfusionMatrix): number | null {
  const total = rows.flat().reduce((sum, count) => sum + count, 0);
  const right = rows.reduce((sum, row, at) => sum + (row[at] ?? 0), 0);
  return total > 0 ? right / total : null;
}
