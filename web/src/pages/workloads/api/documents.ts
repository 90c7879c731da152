import type { Schemas } from "@/api/client";

/** The documents of notebooks, TensorBoards and volumes, as the server describes them. */

export type ResourceStatus = Schemas["ResourceStatus"];
export type NotebookItem = Schemas["NotebookItem"];
export type TensorboardItem = Schemas["TensorboardItem"];
export type VolumeItem = Schemas["VolumeItem"];
export type Program = Schemas["Program"];
export type ProgramInstallation = Schemas["ProgramInstallation"];
export type BackendInfo = Schemas["BackendInfo"];
export type Condition = Schemas["Condition"];
export type WorkloadEvent = Schemas["WorkloadEvent"];
export type Workload = Schemas["Workload"];
export type Snapshot = Schemas["Snapshot"];
export type StorageClass = Schemas["StorageClass"];
