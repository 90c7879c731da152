/** A colour for each entry, with enough contrast in either theme. Names stand beside them. */
const COLORS: [string, string][] = [
  ["#0b6e7f", "#5bc8dc"],
  ["#b3261e", "#ff9089"],
  ["#6b4fbb", "#b7a1ff"],
  ["#865800", "#f0b849"],
  ["#1d5fbf", "#83b6ff"],
  ["#17703a", "#63cf8c"],
  ["#a8327e", "#f08cc9"],
  ["#5b6300", "#c3cf5a"],
  ["#4a5568", "#a9b4c2"],
  ["#9a4a12", "#e8a06a"],
];

export function seriesColor(entry: number): string {
  const [light, dark] = COLORS[entry % COLORS.length] as [string, string];
  return `light-dark(${light}, ${dark})`;
}

/** The colour as a canvas takes it: that of the theme which an element has. */
export function resolveColor(color: string, element: HTMLElement): string {
  const probe = document.createElement("span");
  probe.style.color = color;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
