import {
  type FormConfig,
  imageField,
  images,
  type ServerType,
  type VolumeSpec,
} from "../../api/form-config";
import {
  fromGibibytes,
  readVolume,
  toGibibytes,
  type VolumeChoice,
  writeVolume,
} from "./volume-choice";

export interface Variable {
  key: string;
  name: string;
  value: string;
}

/** What the user has filled in; texts as typed. */
export interface NotebookForm {
  name: string;
  serverType: ServerType;
  image: string;
  /** Used instead of `image` unless it is null. */
  customImage: string | null;
  pullPolicy: string;
  cpu: string;
  cpuLimit: string;
  memory: string;
  memoryLimit: string;
  gpus: string;
  gpuVendor: string;
  workspace: VolumeChoice | null;
  data: VolumeChoice[];
  configurations: string[];
  environment: Variable[];
  affinity: string;
  tolerations: string;
  sharedMemory: boolean;
  /** Empty: as usual; `never`; else minutes. */
  idleMinutes: string;
}

/** The fields of a request, by the names that Kubeflow's form gives them. */
export type FormBody = Record<string, unknown>;

/** Fields of the request, and the field of the configuration that may fix each. */
const CONFIG_FIELDS: Record<string, keyof FormConfig> = {
  imagePullPolicy: "imagePullPolicy",
  cpu: "cpu",
  cpuLimit: "cpu",
  memory: "memory",
  memoryLimit: "memory",
  gpus: "gpus",
  workspace: "workspaceVolume",
  datavols: "dataVolumes",
  configurations: "configurations",
  environment: "environment",
  affinityConfig: "affinityConfig",
  tolerationGroup: "tolerationGroup",
  shm: "shm",
};

export function isReadOnly(config: FormConfig, field: keyof FormConfig): boolean {
  const found = config[field];
  return typeof found === "object" && found.readOnly === true;
}

/** A form with the administrator's defaults. */
export function defaultForm(config: FormConfig, name: string): NotebookForm {
  const gpus = config.gpus?.value;
  const workspace = config.workspaceVolume?.value;
  return {
    name,
    serverType: "jupyter",
    image: images(config, "jupyter")[0] ?? "",
    customImage: null,
    pullPolicy: config.imagePullPolicy?.value ?? "IfNotPresent",
    cpu: String(config.cpu?.value ?? ""),
    cpuLimit: "",
    memory: fromGibibytes(String(config.memory?.value ?? "")),
    memoryLimit: "",
    gpus: gpuCount(gpus?.num),
    gpuVendor: gpus?.vendor || (gpus?.vendors?.[0]?.limitsKey ?? ""),
    workspace: workspace ? readVolume(workspace) : null,
    data: (config.dataVolumes?.value ?? []).map(readVolume),
    configurations: config.configurations?.value ?? [],
    environment: readVariables(config.environment?.value ?? {}),
    affinity: config.affinityConfig?.value ?? "",
    tolerations: config.tolerationGroup?.value ?? "",
    sharedMemory: config.shm?.value ?? false,
    idleMinutes: "",
  };
}

let keys = 0;

export function newVariable(name = "", value = ""): Variable {
  return { key: `variable-${++keys}`, name, value };
}

export function readVariables(values: Record<string, string>): Variable[] {
  return Object.entries(values).map(([name, value]) => newVariable(name, value));
}

function gpuCount(number: unknown): string {
  return number === undefined || number === "" || number === "none" || number === 0
    ? "none"
    : String(number);
}

/** The request for a form. Fields that the administrator has fixed are left out. */
export function formBody(form: NotebookForm, config: FormConfig): FormBody {
  const body: FormBody = {
    name: form.name.trim(),
    serverType: form.serverType,
    ...imageBody(form, config),
    imagePullPolicy: form.pullPolicy,
    cpu: form.cpu.trim(),
    ...(form.cpuLimit.trim() ? { cpuLimit: form.cpuLimit.trim() } : {}),
    memory: toGibibytes(form.memory),
    ...(form.memoryLimit.trim() ? { memoryLimit: toGibibytes(form.memoryLimit) } : {}),
    gpus: form.gpus === "none" ? { num: "none" } : { num: form.gpus, vendor: form.gpuVendor },
    ...(form.workspace ? { workspace: writeVolume(form.workspace) } : {}),
    datavols: form.data.map(writeVolume) satisfies VolumeSpec[],
    configurations: form.configurations,
    environment: Object.fromEntries(
      form.environment.map(({ name, value }) => [name.trim(), value]),
    ),
    affinityConfig: form.affinity,
    tolerationGroup: form.tolerations,
    shm: form.sharedMemory,
    idleMinutes: form.idleMinutes.trim() || null,
  };
  return Object.fromEntries(
    Object.entries(body).filter(([field]) => {
      const configField = CONFIG_FIELDS[field];
      return !configField || !isReadOnly(config, configField);
    }),
  );
}

function imageBody(form: NotebookForm, config: FormConfig): FormBody {
  if (form.customImage !== null) return { customImage: form.customImage.trim() };
  const field = imageField(config, form.serverType);
  return field?.readOnly ? {} : { image: form.image };
}

/** What an edit has to send: the fields that differ, and those that only mean something together. */
export function changedFields(before: FormBody, after: FormBody): FormBody {
  const differs = (field: string) => JSON.stringify(before[field]) !== JSON.stringify(after[field]);
  const all = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed = new Set([...all].filter(differs));
  for (const group of TOGETHER) {
    if (group.some((field) => changed.has(field))) for (const field of group) changed.add(field);
  }
  changed.delete("name");
  changed.delete("serverType");
  return Object.fromEntries(Object.entries(after).filter(([field]) => changed.has(field)));
}

const TOGETHER = [
  ["cpu", "cpuLimit"],
  ["memory", "memoryLimit"],
  ["workspace", "datavols"],
];
