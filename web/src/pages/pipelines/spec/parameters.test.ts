import { expect, test } from "vitest";
import {
  initialTexts,
  type Parameter,
  parseForm,
  parseText,
  readParameters,
  toText,
} from "./parameters";

const spec = {
  root: {
    inputDefinitions: {
      parameters: {
        name: { parameterType: "STRING", description: "Who" },
        greeting: { parameterType: "STRING", defaultValue: "Hello" },
        note: { parameterType: "STRING", isOptional: true },
        epochs: { parameterType: "NUMBER_INTEGER", defaultValue: 10.0 },
        rate: { parameterType: "NUMBER_DOUBLE", defaultValue: 0.1 },
        shuffle: { parameterType: "BOOLEAN", defaultValue: false },
        layers: { parameterType: "LIST", defaultValue: [32.0, 64.0] },
        options: { parameterType: "STRUCT", isOptional: true },
        optimizer: { parameterType: "STRING", literals: ["adam", "sgd"], defaultValue: "adam" },
        size: { parameterType: "NUMBER_INTEGER", literals: [1, 2] },
        status: { parameterType: "TASK_FINAL_STATUS", isOptional: true },
        strange: "not a definition",
      },
    },
  },
};
const parameters = readParameters(spec);
const get = (name: string) => parameters.find((one) => one.name === name) as Parameter;

test("reads every type; statuses and what is malformed are left out", () => {
  expect(parameters.map(({ name, kind, required }) => [name, kind, required])).toEqual([
    ["name", "text", true],
    ["greeting", "text", false],
    ["note", "text", false],
    ["epochs", "integer", false],
    ["rate", "number", false],
    ["shuffle", "boolean", false],
    ["layers", "list", false],
    ["options", "structure", false],
    ["optimizer", "text", false],
    ["size", "integer", true],
  ]);
  expect(get("name").description).toBe("Who");
  expect(get("optimizer").choices).toEqual(["adam", "sgd"]);
  expect(readParameters({ root: [] })).toEqual([]);
  expect(readParameters(null)).toEqual([]);
});

test.each([
  ["name", "Ada", "Ada"],
  ["name", " Ada ", " Ada "],
  ["greeting", "", ""],
  ["epochs", " 20 ", 20],
  ["epochs", "-3", -3],
  ["epochs", "12345678901234567890", "12345678901234567890"],
  ["rate", "1e-3", 0.001],
  ["rate", ".5", 0.5],
  ["rate", "2", 2],
  ["shuffle", "true", true],
  ["layers", "[1, [2]]", [1, [2]]],
  ["layers", "[]", []],
  ["options", '{"a": {"b": null}}', { a: { b: null } }],
  ["optimizer", "sgd", "sgd"],
  ["size", "2", 2],
])("takes %s = %s", (name, typed, value) => {
  expect(parseText(typed, get(name))).toEqual({ value });
});

test.each([
  ["name", "", /Enter a value/],
  ["size", "", /Enter a value/],
  ["epochs", "1.5", /whole number/],
  ["epochs", "ten", /whole number/],
  ["rate", "fast", /a number/],
  ["rate", "1e999", /a number/],
  ["shuffle", "yes", /true or false/],
  ["layers", "[1,", /not JSON.*a list/],
  ["layers", '{"a": 1}', /a list/],
  ["options", "[1]", /a structure/],
  ["options", "null", /a structure/],
  ["optimizer", "lion", /one of adam, sgd/],
  ["size", "3", /one of 1, 2/],
])("refuses %s = %s", (name, typed, message) => {
  expect(parseText(typed, get(name))).toEqual({ error: expect.stringMatching(message) });
});

test("takes nothing for what is optional", () => {
  for (const name of ["note", "options", "epochs", "layers", "shuffle"])
    expect(parseText("  ".slice(0, name === "note" ? 0 : 2), get(name))).toEqual({ missing: true });
});

test("sends only what differs from the defaults", () => {
  const texts = initialTexts(parameters, { epochs: 30, size: 1 });
  expect(texts).toMatchObject({ epochs: "30", rate: "0.1", shuffle: "false", note: "" });
  expect(texts.layers).toBe("[32, 64]");
  const { values, errors } = parseForm(parameters, { ...texts, name: "Ada" });
  expect(errors).toEqual({});
  expect(values).toEqual({ name: "Ada", epochs: 30, size: 1 });
  expect(Object.keys(parseForm(parameters, texts).errors)).toEqual(["name"]);
});

test("shows what a run of another client was given as text", () => {
  expect(toText("30", "integer")).toBe("30");
  expect(toText("[1]", "list")).toBe("[1]");
  expect(toText(undefined, "text")).toBe("");
});

test("shows short lists and structures in one line, without changing them", () => {
  expect(toText({ a: [1, "b"], c: {} }, "structure")).toBe('{"a": [1, "b"], "c": {}}');
  for (const value of [["[ 1", "{ }"], ["a\n  b"], { "x ]": "[ " }])
    expect(JSON.parse(toText(value, "list"))).toEqual(value);
  const long = Array.from({ length: 40 }, (_, n) => n);
  expect(toText(long, "list").split("\n")).toHaveLength(42);
});
