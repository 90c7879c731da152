import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import type { BackendInfo } from "../../api/documents";
import type { FormConfig } from "../../api/form-config";
import { defaultForm } from "./form-state";
import { NotebookForm } from "./notebook-form";

const CLUSTER: BackendInfo = {
  kind: "cluster",
  namespaces: ["team"],
  namespace: "team",
  user: "ada",
  features: {
    notebooks: true,
    tensorboards: true,
    volumes: true,
    snapshots: false,
    gpus: [],
    culling: { enabled: true, idle_minutes: 120 },
  },
  programs: [],
  spawner_error: null,
  apps_origin: null,
  apps_port: 8101,
};
const CONFIG: FormConfig = {
  image: { value: "lab:1", options: ["lab:1"] },
  cpu: { value: "0.5", readOnly: true },
  memory: { value: "1Gi" },
  gpus: { value: { num: "none", vendors: [{ limitsKey: "nvidia.com/gpu", uiName: "NVIDIA" }] } },
  workspaceVolume: { value: null },
};

afterEach(cleanup);

function show(change: Partial<BackendInfo> = {}, onSubmit = vi.fn(async () => {})) {
  vi.stubGlobal("fetch", async () =>
    Response.json({ pvcs: [], poddefaults: [], storage_classes: [] }),
  );
  const config = CONFIG;
  render(
    <QueryClientProvider client={new QueryClient()}>
      <NotebookForm
        initial={defaultForm(config, "notebook-1")}
        config={config}
        backend={{ ...CLUSTER, ...change }}
        namespace="team"
        taken={new Set(["taken"])}
        onSubmit={onSubmit}
        onCancel={() => {}}
      />
    </QueryClientProvider>,
  );
  return { onSubmit, user: userEvent.setup() };
}

test("a field that the administrator has fixed says so", () => {
  show();
  const cpu = screen.getByLabelText<HTMLInputElement>("CPU cores");
  expect(cpu.disabled).toBe(true);
  const note = document.getElementById(cpu.getAttribute("aria-describedby") ?? "");
  expect(note?.textContent).toBe("Set by the administrator.");
});

test("what the cluster lacks is said", async () => {
  const { user } = show();
  expect(screen.getByText(/this cluster has none that notebooks can use/)).toBeTruthy();
  await user.click(screen.getByText("Volumes"));
  await user.click(screen.getByRole("button", { name: "Add a data volume" }));
  const option = screen.getByRole<HTMLOptionElement>("option", { name: /From a snapshot/ });
  expect(option.disabled).toBe(true);
  expect(option.textContent).toContain("this cluster has none");
});

test("GPUs can be chosen where there are some", async () => {
  const { user, onSubmit } = show({
    features: { ...CLUSTER.features, gpus: ["nvidia.com/gpu"] },
  });
  await user.selectOptions(screen.getByLabelText("GPUs"), "2");
  expect(screen.getByLabelText("GPU vendor")).toBeTruthy();
  await user.click(screen.getByRole("button", { name: "Create" }));
  expect(onSubmit).toHaveBeenCalledWith(
    expect.objectContaining({ gpus: { num: "2", vendor: "nvidia.com/gpu" } }),
  );
});

test("a double click submits once", async () => {
  let finish = () => {};
  const submit = vi.fn(() => new Promise<void>((resolve) => (finish = resolve)));
  const { user } = show({}, submit);
  await user.dblClick(screen.getByRole("button", { name: "Create" }));
  expect(submit).toHaveBeenCalledTimes(1);
  expect(screen.getByRole<HTMLButtonElement>("button", { name: "Creating…" }).disabled).toBe(true);
  finish();
  await screen.findByRole("button", { name: "Create" });
});

test("a wrong field is named and focused, and nothing is sent", async () => {
  const { user, onSubmit } = show();
  const name = screen.getByLabelText("Name");
  await user.clear(name);
  await user.type(name, "taken");
  await user.click(screen.getByRole("button", { name: "Create" }));
  expect(await screen.findByText(/There is a notebook with this name/)).toBeTruthy();
  await vi.waitFor(() => expect(document.activeElement).toBe(name));
  expect(onSubmit).not.toHaveBeenCalled();
});

test("a problem in a closed part opens it", async () => {
  const { user } = show();
  await user.click(screen.getByText("Environment variables"));
  await user.click(screen.getByRole("button", { name: "Add a variable" }));
  await user.click(screen.getByText("Environment variables"));
  await user.click(screen.getByRole("button", { name: "Create" }));
  const field = screen.getByLabelText("Variable 1");
  await vi.waitFor(() => expect(document.activeElement).toBe(field));
  expect(field.closest("details")?.open).toBe(true);
});

test("an error of the server is shown, and the form can be sent again", async () => {
  const submit = vi
    .fn()
    .mockRejectedValueOnce(new Error("the quota is used up"))
    .mockResolvedValue(0);
  const { user } = show({}, submit);
  await user.click(screen.getByRole("button", { name: "Create" }));
  expect((await screen.findByRole("alert")).textContent).toContain("the quota is used up");
  await user.click(screen.getByRole("button", { name: "Create" }));
  expect(submit).toHaveBeenCalledTimes(2);
});
