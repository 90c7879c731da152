import { expect, test } from "vitest";
import type { FormConfig } from "../../api/form-config";
import { changedFields, defaultForm, formBody } from "./form-state";
import { readNotebook } from "./read-notebook";
import { newVolume } from "./volume-choice";

const CONFIG: FormConfig = {
  image: { value: "example.org/lab:1", options: ["example.org/lab:1", "example.org/lab:2"] },
  imagePullPolicy: { value: "IfNotPresent" },
  cpu: { value: "0.5", limitFactor: "1.2" },
  memory: { value: "1.0Gi", limitFactor: "1.2" },
  gpus: {
    value: {
      num: "none",
      vendor: "",
      vendors: [{ limitsKey: "nvidia.com/gpu", uiName: "NVIDIA" }],
    },
  },
  workspaceVolume: {
    value: {
      mount: "/home/jovyan",
      newPvc: {
        metadata: { name: "{notebook-name}-workspace" },
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "5Gi" } } },
      },
    },
  },
  dataVolumes: { value: [] },
  tolerationGroup: { value: "", options: [{ groupKey: "gpu", displayName: "GPU nodes" }] },
  affinityConfig: { value: "", options: [] },
  shm: { value: true },
  configurations: { value: ["bucket-access"] },
  environment: { value: {} },
};

test("the defaults give a complete request", () => {
  expect(formBody(defaultForm(CONFIG, "notebook-1"), CONFIG)).toEqual({
    name: "notebook-1",
    serverType: "jupyter",
    image: "example.org/lab:1",
    imagePullPolicy: "IfNotPresent",
    cpu: "0.5",
    memory: "1.0Gi",
    gpus: { num: "none" },
    workspace: {
      mount: "/home/jovyan",
      newPvc: {
        metadata: { name: "{notebook-name}-workspace" },
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "5Gi" } } },
      },
    },
    datavols: [],
    configurations: ["bucket-access"],
    environment: {},
    affinityConfig: "",
    tolerationGroup: "",
    shm: true,
    idleMinutes: null,
  });
});

test("what the administrator has fixed is not sent", () => {
  const config: FormConfig = {
    ...CONFIG,
    image: { ...CONFIG.image, readOnly: true },
    cpu: { ...CONFIG.cpu, readOnly: true },
    workspaceVolume: { ...CONFIG.workspaceVolume, readOnly: true },
  };
  const body = formBody({ ...defaultForm(config, "a"), cpuLimit: "2" }, config);
  expect(Object.keys(body)).not.toContain("image");
  expect(Object.keys(body)).not.toContain("cpu");
  expect(Object.keys(body)).not.toContain("cpuLimit");
  expect(Object.keys(body)).not.toContain("workspace");
});

test("numbers are GiB unless they have a unit", () => {
  const form = defaultForm(CONFIG, "a");
  expect(form.memory).toBe("1.0");
  expect(formBody({ ...form, memory: "512Mi", memoryLimit: "4" }, CONFIG)).toMatchObject({
    memory: "512Mi",
    memoryLimit: "4Gi",
  });
});

test("a volume from a snapshot names it as its source", () => {
  const volume = { ...newVolume(0), source: "snapshot" as const, snapshot: "monday", name: "copy" };
  const body = formBody({ ...defaultForm(CONFIG, "a"), data: [volume] }, CONFIG);
  expect(body.datavols).toMatchObject([
    {
      newPvc: {
        metadata: { name: "copy" },
        spec: {
          dataSource: {
            apiGroup: "snapshot.storage.k8s.io",
            kind: "VolumeSnapshot",
            name: "monday",
          },
        },
      },
    },
  ]);
});

const NOTEBOOK = {
  metadata: {
    name: "mine",
    labels: { app: "mine", "bucket-access": "true" },
    annotations: {
      "notebooks.kubeflow.org/server-type": "jupyter",
      "clew.dev/idle-minutes": "30",
    },
  },
  spec: {
    template: {
      spec: {
        containers: [
          {
            name: "mine",
            image: "example.org/own:3",
            env: [
              { name: "MODE", value: "fast" },
              { name: "KEY", valueFrom: { secretKeyRef: {} } },
            ],
            resources: {
              requests: { cpu: "2", memory: "4Gi" },
              limits: { cpu: "3", memory: "4.8Gi", "nvidia.com/gpu": "1" },
            },
            volumeMounts: [
              { name: "mine-workspace", mountPath: "/home/jovyan" },
              { name: "corpus", mountPath: "/data", readOnly: true },
              { name: "dshm", mountPath: "/dev/shm" },
              { name: "certificates", mountPath: "/etc/certificates" },
            ],
          },
        ],
        volumes: [
          { name: "mine-workspace", persistentVolumeClaim: { claimName: "mine-workspace" } },
          { name: "corpus", persistentVolumeClaim: { claimName: "corpus" } },
          { name: "dshm", emptyDir: { medium: "Memory" } },
          { name: "certificates", secret: { secretName: "certificates" } },
        ],
      },
    },
  },
};

test("a notebook that exists fills in the form", () => {
  expect(readNotebook(NOTEBOOK, CONFIG)).toMatchObject({
    name: "mine",
    customImage: "example.org/own:3",
    cpu: "2",
    memory: "4",
    memoryLimit: "4.8",
    gpus: "1",
    gpuVendor: "nvidia.com/gpu",
    workspace: { source: "existing", name: "mine-workspace" },
    data: [{ source: "existing", name: "corpus", mount: "/data", readOnly: true }],
    configurations: ["bucket-access"],
    environment: [{ name: "MODE", value: "fast" }],
    sharedMemory: true,
    idleMinutes: "30",
  });
});

test("an edit sends what differs, and what belongs to it", () => {
  const before = readNotebook(NOTEBOOK, CONFIG);
  const body = (change: object) =>
    changedFields(formBody(before, CONFIG), formBody({ ...before, ...change }, CONFIG));
  expect(body({})).toEqual({});
  expect(body({ cpu: "2.5" })).toEqual({ cpu: "2.5", cpuLimit: "3" });
  expect(body({ tolerations: "gpu" })).toEqual({ tolerationGroup: "gpu" });
  expect(Object.keys(body({ data: [] })).sort()).toEqual(["datavols", "workspace"]);
  expect(body({ customImage: null })).toEqual({ image: "example.org/lab:1" });
  expect(body({ idleMinutes: "" })).toEqual({ idleMinutes: null });
});
