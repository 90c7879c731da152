import { renderHook } from "@testing-library/react";
import { act } from "react";
import { beforeEach, expect, test, vi } from "vitest";

let connection: typeof import("./connection");

beforeEach(async () => {
  vi.resetModules();
  connection = await import("./connection");
});

test("a lost connection comes back", () => {
  const { result } = renderHook(() => connection.useConnection());
  act(() => connection.reportConnection("lost"));
  expect(result.current).toBe("lost");
  act(() => connection.reportConnection("connected"));
  expect(result.current).toBe("connected");
});

test("a session that has ended stays ended, whatever an open stream still delivers", () => {
  const { result } = renderHook(() => connection.useConnection());
  act(() => connection.reportConnection("logged-out"));
  act(() => connection.reportConnection("connected"));
  expect(result.current).toBe("logged-out");
});
