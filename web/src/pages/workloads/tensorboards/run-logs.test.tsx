import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { type BoardForm, initialBoard } from "./board-form";
import { RunLogs } from "./run-logs";

afterEach(cleanup);

const POD = { kind: "pod", id: "e12", label: "team/train", by: "name", execution: "e12" };
const OBJECT = { kind: "object", id: "e9:s3://b/train", label: "s3://b/train", by: "path" };
const RUN = { id: "e3", name: null, command: ["python3", "fit.py"] };

function Form() {
  const [form, setForm] = useState<BoardForm>(() => initialBoard({ run: "" }, "b", false));
  const change = (part: Partial<BoardForm>) => setForm((before) => ({ ...before, ...part }));
  return <RunLogs form={form} change={change} problem={undefined} local={false} />;
}

test("on a cluster, what agents observed is found by its name", async () => {
  vi.spyOn(globalThis, "fetch").mockImplementation(async (request) => {
    const { pathname, searchParams } = new URL((request as Request).url);
    const hits = searchParams.get("q") === "train" ? [POD, OBJECT] : [];
    return Response.json(pathname.endsWith("/search") ? { hits } : { activities: [RUN] });
  });
  const { container } = render(
    <QueryClientProvider client={new QueryClient()}>
      <Form />
    </QueryClientProvider>,
  );
  await userEvent.setup().type(screen.getByLabelText("Run"), "train");
  await vi.waitFor(() => {
    const offered = [...container.querySelectorAll("option")].map(({ value }) => value);
    expect(offered).toEqual(["e12", "e3"]);
  });
});
