import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { copyText } from "./copy-text";

// jsdom has neither a clipboard nor `execCommand`, as a page over plain HTTP has no clipboard.
let selected: string | undefined;
let accepted = true;

beforeEach(() => {
  selected = undefined;
  accepted = true;
  document.body.innerHTML = "<p>what the user had selected</p><button>Copy</button>";
  document.execCommand = vi.fn(() => {
    selected = window.getSelection()?.toString();
    return accepted;
  });
});

afterEach(() => {
  Reflect.deleteProperty(navigator, "clipboard");
  Reflect.deleteProperty(document, "execCommand");
});

function offerClipboard(writeText: (text: string) => Promise<void>) {
  Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true });
}

test("the clipboard is used where the browser offers it", async () => {
  const writeText = vi.fn(async () => {});
  offerClipboard(writeText);
  expect(await copyText("e1")).toBe(true);
  expect(writeText).toHaveBeenCalledWith("e1");
  expect(document.execCommand).not.toHaveBeenCalled();
});

test("without a clipboard the text is selected and copied, and nothing of it is left", async () => {
  const button = document.querySelector("button");
  const paragraph = document.querySelector("p");
  if (!button || !paragraph) throw new Error("the page is empty");
  const before = document.body.innerHTML;
  button.focus();
  window.getSelection()?.selectAllChildren(paragraph);
  expect(await copyText("one\n  two <b>\n")).toBe(true);
  expect(document.execCommand).toHaveBeenCalledWith("copy");
  expect(selected).toBe("one\n  two <b>\n");
  expect(window.getSelection()?.toString()).toBe("what the user had selected");
  expect(document.activeElement).toBe(button);
  expect(document.body.innerHTML).toBe(before);
});

test("a clipboard that refuses is replaced; if nothing copies, the caller learns of it", async () => {
  offerClipboard(async () => {
    throw new DOMException("the document is not focused", "NotAllowedError");
  });
  expect(await copyText("e1")).toBe(true);
  expect(selected).toBe("e1");
  accepted = false;
  expect(await copyText("e1")).toBe(false);
});
