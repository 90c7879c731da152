import { AnsiUp } from "ansi_up";

/** A part of a line with one look. */
export interface Segment {
  text: string;
  className?: string;
}

interface Fragment {
  text: string;
  bold: boolean;
  faint: boolean;
  italic: boolean;
  underline: boolean;
  fg: { class_name: string } | null;
}

/** The parts of ansi_up that turn what it has parsed into HTML. We make elements of it instead. */
interface Parts {
  transform_to_html: (fragment: Fragment) => string;
  process_hyperlink: (packet: { text: string }) => string;
}

/** Colours that are readable in both themes. Others, such as backgrounds, are not shown. */
const COLOURS: Record<string, string> = {
  red: "text-failure",
  green: "text-success",
  yellow: "text-warning",
  blue: "text-running",
  magenta: "text-accent",
  cyan: "text-accent",
};
const MAX_CHARACTERS = 5000;

function classOf(fragment: Fragment): string | undefined {
  const colour = fragment.fg?.class_name.replace(/^ansi-(bright-)?/, "") ?? "";
  const names = [
    COLOURS[colour],
    fragment.bold && "font-bold",
    fragment.italic && "italic",
    fragment.underline && "underline",
  ].filter(Boolean);
  return names.length ? names.join(" ") : undefined;
}

/** The parts of a line with its ANSI colours; the end of a very long line is left out. */
export function parseLine(line: string): Segment[] {
  const shown = line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS)}…` : line;
  if (!shown.includes("\u001b")) return [{ text: shown }];
  const segments: Segment[] = [];
  const parser = new AnsiUp();
  const parts = parser as unknown as Parts;
  parts.transform_to_html = (fragment) => {
    if (fragment.text) segments.push({ text: fragment.text, className: classOf(fragment) });
    return "";
  };
  parts.process_hyperlink = ({ text }) => {
    segments.push({ text });
    return "";
  };
  parser.ansi_to_html(shown);
  return segments;
}

/** Divide segments where a text occurs, so that the matches can be marked. */
export function markMatches(segments: Segment[], find: string): (Segment & { match?: boolean })[] {
  if (!find) return segments;
  const whole = segments.map(({ text }) => text).join("");
  const [lower, wanted] = [whole.toLowerCase(), find.toLowerCase()];
  const borders = new Set<number>();
  const inside: [number, number][] = [];
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) {
    inside.push([at, at + wanted.length]);
    borders.add(at).add(at + wanted.length);
  }
  if (!inside.length) return segments;
  let start = 0;
  return segments.flatMap(({ text, className }) => {
    const end = start + text.length;
    const cuts = [start, ...[...borders].filter((at) => at > start && at < end), end];
    const divided = cuts.slice(1).map((stop, index) => {
      const from = cuts[index] as number;
      const match = inside.some(([a, b]) => from >= a && stop <= b);
      return { text: whole.slice(from, stop), className, match };
    });
    start = end;
    return divided;
  });
}
