/** The cells of a notebook, from JSON that anyone may have written. */
export type CellOutput =
  | { kind: "text"; text: string; isError?: boolean }
  | { kind: "image"; source: string }
  | { kind: "html"; html: string };

export interface Cell {
  kind: "code" | "markdown" | "raw";
  source: string;
  count: number | null;
  outputs: CellOutput[];
}

const MAX_CELLS = 2000;
const MAX_TEXT = 200_000;
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/svg+xml"];

type Fields = Record<string, unknown>;

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

/** nbformat writes texts as one string or as a list of lines. */
function text(value: unknown): string {
  const found = Array.isArray(value) ? value.map(String).join("") : value;
  return typeof found === "string" ? found.slice(0, MAX_TEXT) : "";
}

/** Null: it is not a notebook of version 4, or has values that cannot be texts or addresses. */
export function readNotebook(json: string): Cell[] | null {
  try {
    return readCells(fields(JSON.parse(json)));
  } catch {
    return null;
  }
}

function readCells(found: Fields): Cell[] | null {
  if (!Array.isArray(found.cells)) return null;
  return found.cells.slice(0, MAX_CELLS).map((one): Cell => {
    const cell = fields(one);
    const kind =
      cell.cell_type === "code" || cell.cell_type === "markdown" ? cell.cell_type : "raw";
    const outputs = Array.isArray(cell.outputs) ? cell.outputs : [];
    return {
      kind,
      source: text(cell.source),
      count: typeof cell.execution_count === "number" ? cell.execution_count : null,
      outputs: outputs.slice(0, 100).flatMap((output) => readOutput(fields(output))),
    };
  });
}

function readOutput(output: Fields): CellOutput[] {
  if (output.output_type === "stream")
    return [{ kind: "text", text: text(output.text), isError: output.name === "stderr" }];
  if (output.output_type === "error") {
    const traceback = Array.isArray(output.traceback)
      ? output.traceback.map(String).join("\n")
      : "";
    return [
      {
        kind: "text",
        text: traceback.slice(0, MAX_TEXT) || String(output.evalue ?? ""),
        isError: true,
      },
    ];
  }
  const data = fields(output.data);
  for (const type of IMAGES) {
    const content = text(data[type]);
    // A cut image would not be one.
    const whole = Array.isArray(data[type]) ? data[type].map(String).join("") : data[type];
    if (content && typeof whole === "string") {
      const encoded =
        type === "image/svg+xml" ? encodeURIComponent(whole) : whole.replace(/\s/g, "");
      const form = type === "image/svg+xml" ? "charset=utf-8" : "base64";
      return [{ kind: "image", source: `data:${type};${form},${encoded}` }];
    }
  }
  const html = text(data["text/html"]);
  if (html) return [{ kind: "html", html }];
  const plain = text(data["text/plain"]);
  return plain ? [{ kind: "text", text: plain }] : [];
}
