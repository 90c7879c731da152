import { expect, test } from "vitest";
import { readNotebook } from "./notebook";

test("reads cells and their outputs", () => {
  const cells = readNotebook(
    JSON.stringify({
      nbformat: 4,
      cells: [
        { cell_type: "markdown", source: ["# Title\n", "text"] },
        {
          cell_type: "code",
          execution_count: 3,
          source: "1 + 1",
          outputs: [
            { output_type: "stream", name: "stderr", text: ["oh\n"] },
            { output_type: "execute_result", data: { "text/plain": "2" } },
            {
              output_type: "display_data",
              data: { "text/html": "<script>x</script>", "text/plain": "t" },
            },
            { output_type: "display_data", data: { "image/png": "aGk=\n", "text/plain": "t" } },
            { output_type: "error", ename: "E", evalue: "bad", traceback: [] },
          ],
        },
      ],
    }),
  );
  expect(cells?.[0]).toMatchObject({ kind: "markdown", source: "# Title\ntext", outputs: [] });
  expect(cells?.[1]?.count).toBe(3);
  expect(cells?.[1]?.outputs).toEqual([
    { kind: "text", text: "oh\n", isError: true },
    { kind: "text", text: "2" },
    { kind: "html", html: "<script>x</script>" },
    { kind: "image", source: "data:image/png;base64,aGk=" },
    { kind: "text", text: "bad", isError: true },
  ]);
});

test.each(["", "{}", "[1]", '{"cells": 3}', "nonsense"])("%j is no notebook", (json) => {
  expect(readNotebook(json)).toBeNull();
});

test("survives malformed cells", () => {
  const cells = readNotebook(
    '{"cells": [null, 3, {"cell_type": "code", "outputs": [null, {"data": 1}]}]}',
  );
  expect(cells).toHaveLength(3);
  expect(cells?.every(({ outputs }) => outputs.length === 0)).toBe(true);
});

test.each([
  { output_type: "display_data", data: { "image/svg+xml": "<svg>\ud800</svg>" } },
  { output_type: "stream", text: [{ toString: 1, valueOf: 1 }] },
])("values that cannot be written are no notebook: %j", (output) => {
  const json = JSON.stringify({ cells: [{ cell_type: "code", outputs: [output] }] });
  expect(readNotebook(json)).toBeNull();
});
