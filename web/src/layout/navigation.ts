import {
  ChartLine,
  HardDrive,
  House,
  ListChecks,
  type LucideIcon,
  NotebookPen,
  Settings,
  Waypoints,
  Workflow,
} from "lucide-react";

export interface Entry {
  label: string;
  to: string;
  icon: LucideIcon;
  /** `g` and this key open the page. */
  key: string;
  /** Pages elsewhere that belong to it. */
  also?: string[];
}

/** Whether a page is that of an entry, or belongs to it. */
export function isEntryOf({ to, also = [] }: Entry, path: string): boolean {
  if (to === "/") return path === "/";
  return [to, ...also].some((start) => path === start || path.startsWith(`${start}/`));
}

export const ENTRIES: Entry[] = [
  { label: "Home", to: "/", icon: House, key: "h" },
  { label: "Runs", to: "/runs", icon: ListChecks, key: "r", also: ["/compare"] },
  {
    label: "Pipelines",
    to: "/pipelines",
    icon: Workflow,
    key: "p",
    also: ["/schedules", "/experiments"],
  },
  { label: "Lineage", to: "/lineage", icon: Waypoints, key: "l" },
  { label: "Notebooks", to: "/notebooks", icon: NotebookPen, key: "n" },
  { label: "TensorBoards", to: "/tensorboards", icon: ChartLine, key: "t" },
  { label: "Volumes", to: "/volumes", icon: HardDrive, key: "v" },
  { label: "Settings", to: "/settings", icon: Settings, key: "s" },
];
