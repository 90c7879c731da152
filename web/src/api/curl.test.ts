import { expect, test } from "vitest";
import { curlCommand } from "./curl";

test("a command for a shell", () => {
  expect(curlCommand("/api/v1/things", { name: "it's" }, "http://here")).toBe(
    `curl -H "Authorization: Bearer \${CLEW_TOKEN:-$(cat .clew/token)}" --json '{"name":"it'\\''s"}' 'http://here/api/v1/things'`,
  );
});
