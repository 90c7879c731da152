/** The documents of notebooks, TensorBoards and volumes, as the server describes them. */

export interface ResourceStatus {
  phase: string;
  message: string;
  state: string;
}

export interface NotebookItem {
  name: string;
  namespace: string;
  serverType: string;
  age: string;
  last_activity: string;
  image: string;
  shortImage: string;
  cpu: string | null;
  memory: string | null;
  gpus: { count: number; message: string };
  volumes: string[];
  status: ResourceStatus;
  configurations: string[];
  idle_minutes: string | null;
}

export interface TensorboardItem {
  name: string;
  namespace: string;
  logspath: string;
  age: string;
  status: ResourceStatus;
}

export interface VolumeItem {
  name: string;
  namespace: string;
  status: ResourceStatus;
  age: string;
  capacity: string | null;
  modes: string[];
  class: string | null;
  notebooks: string[];
  viewer: { status: string; url: string | null };
}

export interface Program {
  name: string;
  installed: boolean;
  version: string | null;
  can_install: boolean;
}

export interface ProgramInstallation {
  name: string;
  state: string;
  output: string;
  error: string | null;
}

export interface BackendInfo {
  kind: string;
  namespaces: string[];
  namespace: string | null;
  user: string;
  features: {
    notebooks: boolean;
    tensorboards: boolean;
    volumes: boolean;
    snapshots: boolean;
    gpus: string[];
    culling: { enabled: boolean; idle_minutes: number | null };
  };
  programs: Program[];
  spawner_error: string | null;
  apps_origin: string | null;
  apps_port: number | null;
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  at: string | null;
}

export interface WorkloadEvent {
  type: string;
  reason: string;
  message: string;
  at: string | null;
  count: number;
}

export interface Container {
  name: string;
  state: string;
  ready: boolean;
  restarts: number;
}

export interface Workload {
  kind: string;
  name: string;
  namespace: string;
  phase: string;
  message: string;
  conditions: Condition[];
  events: WorkloadEvent[];
  containers: Container[];
  applied: string[];
  yaml: string;
  url: string | null;
}
