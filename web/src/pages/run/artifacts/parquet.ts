import { parquetMetadataAsync, parquetReadObjects, parquetSchema } from "hyparquet";

export const MAX_PARQUET_BYTES = 32 * 2 ** 20;
const MAX_ROWS = 200;
const MAX_COLUMNS = 100;
const MAX_UNPACKED_BYTES = 512 * 2 ** 20;
const MAX_CELL = 300;

export interface ParquetRows {
  columns: string[];
  rows: string[][];
  /** The number of rows of the file. */
  total: number;
  /** The number of columns that are left out. */
  hidden: number;
}

/** The first rows of a Parquet file. What a file claims to contain is limited before it is read. */
export async function readParquet(file: ArrayBuffer): Promise<ParquetRows> {
  try {
    const metadata = await parquetMetadataAsync(file);
    const names = parquetSchema(metadata).children.map(({ element }) => element.name);
    const columns = names.slice(0, MAX_COLUMNS);
    const total = Number(metadata.num_rows);
    // One group of rows is unpacked as a whole.
    const [group] = metadata.row_groups;
    if (Number(group?.total_byte_size ?? 0) > MAX_UNPACKED_BYTES) {
      throw new Error("its first rows need more than 512 MB");
    }
    const rowEnd = Math.min(total, MAX_ROWS, Number(group?.num_rows ?? 0));
    const rows = rowEnd ? await parquetReadObjects({ file, metadata, columns, rowEnd }) : [];
    return {
      columns,
      rows: rows.map((row) => columns.map((name) => formatCell(row[name]))),
      total,
      hidden: names.length - columns.length,
    };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `The table cannot be shown: ${why}. Download the file, or read it with pandas.`,
    );
  }
}

export function formatCell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? "" : value.toISOString().replace("T00:00:00.000Z", "");
  }
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  const text =
    typeof value === "object"
      ? JSON.stringify(value, (_, part) => (typeof part === "bigint" ? String(part) : part))
      : String(value);
  return text.length > MAX_CELL ? `${text.slice(0, MAX_CELL)}…` : text;
}
