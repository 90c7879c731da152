import type { VolumeSpec } from "../../api/form-config";

export const PLACEHOLDER = "{notebook-name}";
export const HOME = "/home/jovyan";
const SNAPSHOT_GROUP = "snapshot.storage.k8s.io";

export const ACCESS_MODES: Record<string, string> = {
  ReadWriteOnce: "Read and write, on one machine",
  ReadWriteMany: "Read and write, on many machines",
  ReadOnlyMany: "Read only, on many machines",
  ReadWriteOncePod: "Read and write, by one program",
};

export type VolumeSource = "new" | "existing" | "snapshot" | "other";

/** One row of the form. */
export interface VolumeChoice {
  key: string;
  source: VolumeSource;
  /** The name of the new volume, or of the existing one. */
  name: string;
  /** As typed: a number of GiB, or a quantity. */
  size: string;
  mode: string;
  /** Empty: the default class. */
  storageClass: string;
  snapshot: string;
  mount: string;
  readOnly: boolean;
  /** A source that the form cannot show, such as NFS; it is sent back as it is. */
  other?: Record<string, unknown>;
}

let keys = 0;

export function newVolume(taken: number): VolumeChoice {
  const name = `${PLACEHOLDER}-data-${taken + 1}`;
  return {
    key: `volume-${++keys}`,
    source: "new",
    name,
    size: "5",
    mode: "ReadWriteOnce",
    storageClass: "",
    snapshot: "",
    mount: `${HOME}/data-${taken + 1}`,
    readOnly: false,
  };
}

export function readVolume(spec: VolumeSpec): VolumeChoice {
  const empty = { ...newVolume(0), mount: spec.mount ?? "", readOnly: spec.readOnly === true };
  if (spec.newPvc) {
    const { metadata, spec: claim } = spec.newPvc;
    return {
      ...empty,
      source: claim.dataSource?.kind === "VolumeSnapshot" ? "snapshot" : "new",
      snapshot: claim.dataSource?.name ?? "",
      name: metadata.name ?? metadata.generateName?.replace(/-$/, "") ?? "",
      size: fromGibibytes(claim.resources?.requests?.storage ?? ""),
      mode: claim.accessModes?.[0] ?? "ReadWriteOnce",
      storageClass: claim.storageClassName ?? "",
    };
  }
  const claim = spec.existingSource?.persistentVolumeClaim?.claimName;
  if (claim !== undefined) return { ...empty, source: "existing", name: claim };
  return { ...empty, source: "other", name: "", other: spec.existingSource };
}

export function writeVolume(choice: VolumeChoice): VolumeSpec {
  const common = { mount: choice.mount.trim(), ...(choice.readOnly ? { readOnly: true } : {}) };
  if (choice.source === "other") return { ...common, existingSource: choice.other ?? {} };
  const name = choice.name.trim();
  if (choice.source === "existing") {
    return { ...common, existingSource: { persistentVolumeClaim: { claimName: name } } };
  }
  return {
    ...common,
    newPvc: {
      metadata: { name },
      spec: {
        accessModes: [choice.mode],
        resources: { requests: { storage: toGibibytes(choice.size) } },
        ...(choice.storageClass ? { storageClassName: choice.storageClass } : {}),
        ...(choice.source === "snapshot"
          ? {
              dataSource: {
                apiGroup: SNAPSHOT_GROUP,
                kind: "VolumeSnapshot",
                name: choice.snapshot,
              },
            }
          : {}),
      },
    },
  };
}

/** `4Gi` is shown as `4`: sizes are in GiB unless they have another unit. */
export function fromGibibytes(quantity: string): string {
  return /^\d+(\.\d+)?Gi$/.test(quantity) ? quantity.slice(0, -2) : quantity;
}

export function toGibibytes(typed: string): string {
  const text = typed.trim();
  return /^\d+(\.\d+)?$/.test(text) ? `${text}Gi` : text;
}

/** The name as it will be: the server replaces the placeholder. */
export function resolveName(text: string, notebook: string): string {
  return text.replaceAll(PLACEHOLDER, notebook || "notebook");
}
