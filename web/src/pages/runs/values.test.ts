import { expect, test } from "vitest";
import { quoteCommand, shortCommand } from "./command";
import { formatNumber, formatValue } from "./values";

test.each([
  [0.912345678, "0.91235"],
  [0, "0"],
  [-0.5, "-0.5"],
  [1.23e-7, "1.23e-7"],
  [12345678, "12,345,678"],
  [1234567.891, "1234568"],
  [1e20, "1e+20"],
])("formats %d", (value, text) => {
  expect(formatNumber(value)).toBe(text);
});

test("shows values as they are", () => {
  expect(formatValue(2020)).toBe("2020");
  expect(formatValue("adam")).toBe("adam");
  expect(formatValue(true)).toBe("true");
  expect(formatValue(null)).toBe("–");
});

test("quotes a command as a shell does", () => {
  expect(quoteCommand(["sh", "-c", "echo 'a'", ""])).toBe(`sh -c 'echo '"'"'a'"'"'' ''`);
});

test("leaves out the interpreter of a script", () => {
  expect(shortCommand(["/usr/bin/python3.11", "a.py", "-x"])).toBe("a.py -x");
  expect(shortCommand(["python3", "-m", "a"])).toBe("python3 -m a");
  expect(shortCommand([])).toBe("");
});
