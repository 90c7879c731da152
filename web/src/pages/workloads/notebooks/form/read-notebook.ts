import { type FormConfig, images, SERVER_TYPES, type ServerType } from "../../api/form-config";
import type { Resource } from "../../api/queries";
import { defaultForm, type NotebookForm, readVariables } from "./form-state";
import { fromGibibytes, HOME, readVolume, type VolumeChoice } from "./volume-choice";

const SERVER_TYPE = "notebooks.kubeflow.org/server-type";
const IDLE_MINUTES = "clew.dev/idle-minutes";
const SHARED_MEMORY = "dshm";

interface Container {
  name?: string;
  image?: string;
  imagePullPolicy?: string;
  env?: { name: string; value?: string; valueFrom?: unknown }[];
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
}

interface Notebook {
  metadata: {
    name: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec?: {
    template?: {
      spec?: {
        containers?: Container[];
        volumes?: { name: string; persistentVolumeClaim?: { claimName: string } }[];
        affinity?: unknown;
        tolerations?: unknown;
      };
    };
  };
}

/** The form of a notebook that exists. What the form does not know, an edit leaves as it is. */
export function readNotebook(resource: Resource, config: FormConfig): NotebookForm {
  const notebook = resource as unknown as Notebook;
  const { metadata } = notebook;
  const notes = metadata.annotations ?? {};
  const type = notes[SERVER_TYPE] ?? "jupyter";
  const serverType = (type in SERVER_TYPES ? type : "jupyter") as ServerType;
  const pod = notebook.spec?.template?.spec ?? {};
  const containers = pod.containers ?? [];
  const container = containers.find(({ name }) => name === metadata.name) ?? containers[0] ?? {};
  const { requests = {}, limits = {} } = container.resources ?? {};
  const vendors = config.gpus?.value?.vendors ?? [];
  const vendor = vendors.find(({ limitsKey }) => limitsKey in limits)?.limitsKey;
  const volumes = readVolumes(pod.volumes ?? [], container.volumeMounts ?? []);
  const workspace = volumes.find(({ mount }) => mount === HOME) ?? null;
  const image = container.image ?? "";
  const isListed = images(config, serverType).includes(image);
  const standard = defaultForm(config, metadata.name);
  return {
    ...standard,
    serverType,
    image: isListed ? image : standard.image,
    customImage: isListed ? null : image,
    pullPolicy: container.imagePullPolicy ?? standard.pullPolicy,
    cpu: requests.cpu ?? "",
    cpuLimit: limits.cpu ?? "",
    memory: fromGibibytes(requests.memory ?? ""),
    memoryLimit: fromGibibytes(limits.memory ?? ""),
    gpus: vendor ? String(limits[vendor]) : "none",
    gpuVendor: vendor ?? standard.gpuVendor,
    workspace,
    data: volumes.filter((volume) => volume !== workspace),
    configurations: Object.entries(metadata.labels ?? {})
      .filter(([, value]) => value === "true")
      .map(([label]) => label),
    environment: readVariables(
      Object.fromEntries(
        (container.env ?? [])
          .filter(({ valueFrom }) => valueFrom === undefined)
          .map(({ name, value }) => [name, value ?? ""]),
      ),
    ),
    affinity: findOption(config.affinityConfig?.options, "configKey", "affinity", pod.affinity),
    tolerations: findOption(
      config.tolerationGroup?.options,
      "groupKey",
      "tolerations",
      pod.tolerations,
    ),
    sharedMemory: (pod.volumes ?? []).some(({ name }) => name === SHARED_MEMORY),
    idleMinutes: notes[IDLE_MINUTES] ?? "",
  };
}

/** The volumes that the form knows, in the order of their mounts. */
function readVolumes(
  volumes: { name: string; persistentVolumeClaim?: { claimName: string } }[],
  mounts: { name: string; mountPath: string; readOnly?: boolean }[],
): VolumeChoice[] {
  const claims = new Map(
    volumes.map(({ name, persistentVolumeClaim: claim }) => [name, claim?.claimName]),
  );
  return mounts.flatMap(({ name, mountPath, readOnly }) => {
    const claimName = claims.get(name);
    if (!claimName) return [];
    const existingSource = { persistentVolumeClaim: { claimName } };
    return [readVolume({ mount: mountPath, readOnly, existingSource })];
  });
}

/** The key of the option whose value a notebook has; empty: none, or one that is not offered. */
function findOption(
  options: object[] | undefined,
  keyField: string,
  valueField: string,
  value: unknown,
): string {
  if (value === undefined) return "";
  const wanted = JSON.stringify(value);
  const found = (options as Record<string, unknown>[] | undefined)?.find(
    (option) => JSON.stringify(option[valueField]) === wanted,
  );
  return found ? String(found[keyField]) : "";
}
