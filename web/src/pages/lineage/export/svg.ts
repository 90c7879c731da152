import type { Direction, GraphLink, GraphNode, Rectangles } from "@/graph/graph";
import { absoluteRectangles } from "@/graph/layout";

const MARGIN = 24;
const MAX_CHARACTERS = 30;
const TONES: Record<string, string> = {
  accent: "#0b6e7f",
  warning: "#865800",
  running: "#1d5fbf",
};
const STYLE = `
text { font: 13px system-ui, "Segoe UI", Roboto, sans-serif; fill: #151a20 }
.sub { font-size: 11px; fill: #55606d }
.box { fill: #fff; stroke: #8a95a3 }
.frame { fill: #f1f3f6; stroke: #d9dee5 }
.link { fill: none; stroke: #8a95a3; stroke-width: 1.3 }
.inferred { stroke-dasharray: 5 4 }
.on { stroke: #0b6e7f; stroke-width: 2.4 }
.off { opacity: 0.3 }`;

/** A text inside of markup. What no XML may contain is left out. */
export function escapeXml(text: string): string {
  return text
    .replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** The drawing as a picture of its own: it has no scripts and refers to no other file. */
export function writeSvg(
  title: string,
  nodes: GraphNode[],
  links: GraphLink[],
  relative: Rectangles,
  highlighted: ReadonlySet<string> | null,
  direction: Direction = "right",
): string {
  const places = absoluteRectangles(nodes, relative);
  let [right, bottom] = [0, 0];
  for (const { x, y, width, height } of places.values()) {
    right = Math.max(right, x + width);
    bottom = Math.max(bottom, y + height);
  }
  const [width, height] = [right + 2 * MARGIN, bottom + 2 * MARGIN];
  const shade = (...ids: string[]) =>
    highlighted ? (ids.every((id) => highlighted.has(id)) ? " on" : " off") : "";
  const frames = nodes.filter(({ isFrame }) => isFrame);
  const boxes = nodes.filter(({ isFrame }) => !isFrame);
  const parts = [
    ...frames.map((node) => drawBox(node, places, "")),
    ...links.map((link) => drawLink(link, places, shade(link.source, link.target), direction)),
    ...boxes.map((node) => drawBox(node, places, shade(node.id))),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="${-MARGIN} ${-MARGIN} ${width} ${height}" role="img">
<title>${escapeXml(title)}</title>
<style>${STYLE}</style>
<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 10 5 0 10z" fill="#8a95a3"/></marker></defs>
<rect x="${-MARGIN}" y="${-MARGIN}" width="${width}" height="${height}" fill="#fff"/>
${parts.filter(Boolean).join("\n")}
</svg>
`;
}

function drawBox(node: GraphNode, places: Rectangles, shade: string): string {
  const place = places.get(node.id);
  if (!place) return "";
  const { x, y, width, height } = place;
  const stroke = TONES[node.tone ?? ""];
  const first = y + (node.isFrame ? 22 : height / 2 - (node.subtitle ? 4 : -4));
  const lines = [line(node.title, x, first, "")];
  if (node.subtitle && !node.isFrame)
    lines.push(line(node.subtitle, x, first + 17, ' class="sub"'));
  return `<g class="${shade.trim() === "off" ? "off" : ""}"><title>${escapeXml([node.kind, node.title, node.subtitle].filter(Boolean).join(", "))}</title><rect class="${node.isFrame ? "frame" : "box"}" x="${x}" y="${y}" width="${width}" height="${height}" rx="8"${stroke && !node.isFrame ? ` style="stroke:${stroke}"` : ""}/>${lines.join("")}</g>`;
}

function line(text: string, x: number, y: number, attributes: string): string {
  const characters = [...text];
  const shown =
    characters.length > MAX_CHARACTERS
      ? `${characters.slice(0, MAX_CHARACTERS - 1).join("")}…`
      : text;
  return `<text x="${x + 12}" y="${y}"${attributes}>${escapeXml(shown)}</text>`;
}

function drawLink(
  link: GraphLink,
  places: Rectangles,
  shade: string,
  direction: Direction,
): string {
  const [from, to] = [places.get(link.source), places.get(link.target)];
  if (!from || !to) return "";
  const right = direction === "right";
  const [x1, y1] = right
    ? [from.x + from.width, from.y + from.height / 2]
    : [from.x + from.width / 2, from.y + from.height];
  const [x2, y2] = right ? [to.x, to.y + to.height / 2] : [to.x + to.width / 2, to.y];
  const bend = Math.max(24, Math.abs(right ? x2 - x1 : y2 - y1) / 2);
  const curve = right
    ? `C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
    : `C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
  return `<path class="link${link.dashed ? " inferred" : ""}${shade}" d="M${x1} ${y1} ${curve}" marker-end="url(#arrow)"/>`;
}
