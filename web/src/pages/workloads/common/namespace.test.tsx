import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import type { BackendInfo } from "../api/documents";
import { ALL, currentNamespace, NamespaceSelect, shownNamespaces } from "./namespace";

const BACKEND = { namespaces: ["one", "two"], namespace: "one" } as BackendInfo;

afterEach(cleanup);

test("a list shows one namespace, or all", () => {
  expect(shownNamespaces(BACKEND, undefined)).toEqual(["one"]);
  expect(shownNamespaces(BACKEND, "two")).toEqual(["two"]);
  expect(shownNamespaces(BACKEND, ALL)).toEqual(["one", "two"]);
  expect(currentNamespace(BACKEND, ALL)).toBe("one");
});

test("with one namespace there is nothing to choose", () => {
  const alone = { ...BACKEND, namespaces: ["one"] };
  render(<NamespaceSelect backend={alone} chosen={undefined} onChoose={() => {}} />);
  expect(screen.queryByRole("combobox")).toBeNull();
});

test("the address names a namespace unless it is the usual one", async () => {
  const onChoose = vi.fn();
  const user = userEvent.setup();
  render(<NamespaceSelect backend={BACKEND} chosen="two" onChoose={onChoose} />);
  const select = screen.getByRole("combobox", { name: "Namespace" });
  await user.selectOptions(select, "All");
  await user.selectOptions(select, "one");
  expect(onChoose.mock.calls).toEqual([[ALL], [undefined]]);
});

test("something is created in one namespace, also in one that the list does not have", () => {
  render(<NamespaceSelect backend={BACKEND} chosen="old" all={false} onChoose={() => {}} />);
  const names = screen.getAllByRole("option").map((option) => option.textContent);
  expect(names).toEqual(["old", "one", "two"]);
});
