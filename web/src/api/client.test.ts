import { expect, test, vi } from "vitest";
import { csrfToken, fetchJson, sendJson } from "./client";
import * as connection from "./connection";

function respond(status: number, body: string, type = "application/json") {
  const response = new Response(body, { status, headers: { "Content-Type": type } });
  return vi.spyOn(globalThis, "fetch").mockResolvedValue(response);
}

test("reads the token of the cookie", () => {
  expect(csrfToken("a=b; XSRF-TOKEN=abc_-9; c=d")).toBe("abc_-9");
  expect(csrfToken("")).toBe("");
});

test("sends the token with writes only", async () => {
  // biome-ignore lint/suspicious/noDocumentCookie: the test needs the cookie that the server sets
  document.cookie = "XSRF-TOKEN=t1";
  const sent: (string | null)[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (request) => {
    sent.push((request as Request).headers.get("X-XSRF-TOKEN"));
    return new Response("{}");
  });
  await sendJson("POST", "/x", {});
  await fetchJson("/x");
  expect(sent).toEqual(["t1", null]);
});

test.each([
  ['{"title":"no such run","code":"not-found","detail":"clew list"}', "no such run", "clew list"],
  ['{"success":false,"log":"name taken","status":409}', "name taken", null],
  ['{"error":"bad filter","code":3,"message":"bad filter"}', "bad filter", null],
  ["<html>", "404", null],
])("reads the error %s", async (body, message, hint) => {
  respond(404, body);
  await expect(fetchJson("/x")).rejects.toMatchObject({
    status: 404,
    message: expect.stringContaining(message),
    hint,
  });
});

test("only this server's 401 ends the session", async () => {
  const reported = vi.spyOn(connection, "reportConnection");
  for (const [headers, state] of [
    [{ "WWW-Authenticate": 'Basic realm="elsewhere"' }, "connected"],
    [{}, "connected"],
    [{ "WWW-Authenticate": "Bearer" }, "logged-out"],
  ] as const) {
    const response = new Response("{}", { status: 401, headers });
    vi.spyOn(globalThis, "fetch").mockResolvedValue(response);
    await expect(fetchJson("/x")).rejects.toMatchObject({ status: 401 });
    expect(reported).toHaveBeenLastCalledWith(state);
  }
});

test("says that the server is away", async () => {
  vi.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("Failed to fetch"));
  await expect(fetchJson("/x")).rejects.toMatchObject({ code: "unreachable" });
});
