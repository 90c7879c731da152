/** The administrator's defaults of the notebook form: `spawnerFormDefaults` in Kubeflow's format. */
export interface FormConfig {
  allowCustomImage?: boolean;
  hideRegistry?: boolean;
  hideTag?: boolean;
  image?: ImageField;
  imageGroupOne?: ImageField;
  imageGroupTwo?: ImageField;
  imagePullPolicy?: ConfigField<string>;
  cpu?: ConfigField<string> & { limitFactor?: string };
  memory?: ConfigField<string> & { limitFactor?: string };
  gpus?: ConfigField<{ num?: string; vendor?: string; vendors?: GpuVendor[] }>;
  workspaceVolume?: ConfigField<VolumeSpec | null>;
  dataVolumes?: ConfigField<VolumeSpec[]>;
  affinityConfig?: ConfigField<string> & {
    options?: { configKey: string; displayName?: string }[];
  };
  tolerationGroup?: ConfigField<string> & {
    options?: { groupKey: string; displayName?: string }[];
  };
  shm?: ConfigField<boolean>;
  configurations?: ConfigField<string[]>;
  environment?: ConfigField<Record<string, string>>;
}

export interface ConfigField<Value> {
  value?: Value;
  readOnly?: boolean;
}

type ImageField = ConfigField<string> & { options?: string[] };

export interface GpuVendor {
  limitsKey: string;
  uiName: string;
}

/** A volume as the form sends it: where it is mounted, and what it is. */
export interface VolumeSpec {
  mount: string;
  readOnly?: boolean;
  newPvc?: {
    metadata: { name?: string; generateName?: string };
    spec: {
      accessModes?: string[];
      resources?: { requests?: { storage?: string } };
      storageClassName?: string;
      dataSource?: { apiGroup?: string; kind?: string; name?: string };
    };
  };
  existingSource?: Record<string, unknown> & { persistentVolumeClaim?: { claimName: string } };
}

export type ServerType = "jupyter" | "group-one" | "group-two";

const IMAGE_FIELDS = {
  jupyter: "image",
  "group-one": "imageGroupOne",
  "group-two": "imageGroupTwo",
} as const;

export const SERVER_TYPES: Record<ServerType, string> = {
  jupyter: "JupyterLab",
  "group-one": "VS Code",
  "group-two": "RStudio",
};

/** The field with the images of a server type. */
export function imageField(config: FormConfig, type: ServerType): ImageField | undefined {
  return config[IMAGE_FIELDS[type]];
}

/** The server types that the administrator offers images for. */
export function serverTypes(config: FormConfig): ServerType[] {
  return (Object.keys(IMAGE_FIELDS) as ServerType[]).filter(
    (type) => images(config, type).length > 0 || type === "jupyter",
  );
}

export function images(config: FormConfig, type: ServerType): string[] {
  const field = imageField(config, type);
  const found = [...(field?.value ? [field.value] : []), ...(field?.options ?? [])];
  return [...new Set(found)];
}

/** How an image is shown: without what the administrator hides. */
export function imageLabel(image: string, config: FormConfig): string {
  if (image === "this-machine") return "This machine's Python";
  let shown = image;
  if (config.hideRegistry) shown = shown.split("/").at(-1) ?? shown;
  if (config.hideTag) shown = shown.replace(/(@[^/]*|:[^/:]*)$/, "");
  return shown;
}
