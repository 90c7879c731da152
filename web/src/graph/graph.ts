import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

export type Tone = "neutral" | "accent" | "success" | "failure" | "running" | "warning";
export type Side = "before" | "after";
/** Which way the links run on the screen. */
export type Direction = "right" | "down";

/** Something to draw: a box with an icon and two lines of text, or a frame around other boxes. */
export interface GraphNode {
  id: string;
  title: string;
  subtitle?: string;
  /** What it is, in a word, for those who do not see the icon. */
  kind: string;
  icon: LucideIcon;
  tone?: Tone;
  /** Shown at its right, such as a state. */
  badge?: ReactNode;
  /** The frame that contains it. */
  parent?: string;
  isFrame?: boolean;
  /** It stands for several things: drawn as a pile. */
  isPile?: boolean;
  /** The sides on which it can be followed further. */
  more?: Partial<Record<Side, string>>;
}

export interface GraphLink {
  id: string;
  source: string;
  target: string;
  /** Inferred, not observed. */
  dashed?: boolean;
}

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export type Rectangles = Map<string, Rectangle>;

export const BOX = { width: 224, height: 54 };
/** More than this is never drawn: nobody can read it, and browsers become slow. */
export const MAX_NODES = 2500;
