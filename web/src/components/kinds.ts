import {
  Boxes,
  Cloud,
  Cog,
  Container,
  Cpu,
  File,
  FileCode,
  FileSliders,
  Globe,
  HardDrive,
  KeyRound,
  Layers,
  ListChecks,
  type LucideIcon,
  Package,
  Play,
  Server,
  SquareTerminal,
  UserCog,
  Workflow,
} from "lucide-react";
import type { Tone } from "@/graph/graph";

interface Kind {
  label: string;
  plural: string;
  icon: LucideIcon;
  tone: Tone;
}

const KINDS: Record<string, Kind> = {
  data: { label: "File", plural: "Files", icon: File, tone: "neutral" },
  file: { label: "File", plural: "Files", icon: File, tone: "neutral" },
  model: { label: "Model", plural: "Models", icon: Boxes, tone: "accent" },
  configuration: {
    label: "Configuration",
    plural: "Configuration",
    icon: FileSliders,
    tone: "neutral",
  },
  source: { label: "Source code", plural: "Source code", icon: FileCode, tone: "neutral" },
  package: { label: "File of a package", plural: "Packages", icon: Package, tone: "neutral" },
  system: { label: "File of the system", plural: "System", icon: Cpu, tone: "neutral" },
  stream: { label: "Stream", plural: "Streams", icon: SquareTerminal, tone: "neutral" },
  network: { label: "Network address", plural: "Network", icon: Globe, tone: "neutral" },
  object: { label: "Object", plural: "Objects", icon: Cloud, tone: "neutral" },
  volume: { label: "Volume", plural: "Volumes", icon: HardDrive, tone: "neutral" },
  configmap: { label: "ConfigMap", plural: "ConfigMaps", icon: FileSliders, tone: "neutral" },
  secret: { label: "Secret", plural: "Secrets", icon: KeyRound, tone: "neutral" },
  service: { label: "Service", plural: "Services", icon: Globe, tone: "neutral" },
  ip: { label: "IP address", plural: "IP addresses", icon: Globe, tone: "neutral" },
  request: { label: "API request", plural: "API requests", icon: UserCog, tone: "running" },
  image: { label: "Image", plural: "Images", icon: Layers, tone: "neutral" },
  process: { label: "Process", plural: "Processes", icon: Cog, tone: "running" },
  task: { label: "Task", plural: "Tasks", icon: ListChecks, tone: "running" },
  pod: { label: "Pod", plural: "Pods", icon: Container, tone: "running" },
  container: { label: "Container", plural: "Containers", icon: Container, tone: "running" },
  controller: { label: "Controller", plural: "Controllers", icon: Cog, tone: "running" },
  claim: { label: "Claim", plural: "Claims", icon: HardDrive, tone: "neutral" },
  node: { label: "Machine", plural: "Machines", icon: Server, tone: "neutral" },
  execution: { label: "Execution", plural: "Executions", icon: Play, tone: "running" },
  run: { label: "Pipeline run", plural: "Pipeline runs", icon: Workflow, tone: "running" },
};

/** How a kind of thing is called and drawn. Witnesses may report kinds that are not known here. */
export function describeKind(kind: string): Kind {
  const known = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (known) return known;
  const label = kind.charAt(0).toUpperCase() + kind.slice(1);
  return { label, plural: label, icon: Cog, tone: "running" };
}
