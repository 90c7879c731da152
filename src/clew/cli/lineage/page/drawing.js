"use strict";
/* Turns units and curves into SVG. Shapes tell kinds apart without colour: a file is a sheet with
   a folded corner, a process a pill, a group a pile of sheets, anything else a hexagon. */
const Drawing = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const HEIGHT = 46, WIDEST = 190, PAD = 11;
  const pen = document.createElement("canvas").getContext("2d");
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

  function el(name, attributes, ...children) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes || {}))
      if (value !== undefined && value !== false) made.setAttribute(key, value);
    for (const child of children) if (child) made.append(child);
    return made;
  }

  function textWidth(text, font) {
    pen.font = font;
    return pen.measureText(text).width;
  }

  /* A path loses its first directories, then the middle of the file name; all else is cut at the end. */
  function fitted(text, font, room, middle) {
    if (textWidth(text, font) <= room) return text;
    if (middle && text.includes("/")) {
      const parts = text.split("/");
      const short = parts.map((_, i) => `…/${parts.slice(i).join("/")}`).find((it, i) => i && textWidth(it, font) <= room);
      if (short) return short;
      text = parts.at(-1);
      if (textWidth(text, font) <= room) return text;
    }
    let keep = text.length - 1;
    const cut = () => middle ? `${text.slice(0, Math.ceil(keep * 0.55))}…${text.slice(text.length - Math.floor(keep * 0.45))}` : `${text.slice(0, keep)}…`;
    while (keep > 3 && textWidth(cut(), font) > room) keep--;
    return cut();
  }

  function measure(unit) {
    const lead = ["file", "stub", "execution"].includes(unit.kind) ? 0 : 19;
    const tail = unit.kind === "file" || unit.kind === "group" ? 8 : 4;
    const room = WIDEST + (lead ? 22 : 0) - 2 * PAD - lead - tail;
    unit.line1 = fitted(unit.title, `600 13px ${FONT}`, room, unit.kind === "file");
    unit.line2 = fitted(unit.sub || "", `11px ${FONT}`, room, unit.kind === "file");
    const text = Math.max(
      textWidth(unit.line1, `600 13px ${FONT}`), textWidth(unit.line2, `11px ${FONT}`),
      unit.mark ? textWidth(unit.mark, `600 10px ${FONT}`) + 16 : 0);
    unit.w = Math.max(84, Math.ceil(text) + 2 * PAD + lead + tail);
    unit.h = unit.mark ? HEIGHT + 16 : HEIGHT;
    unit.lead = lead;
  }

  function shape(unit) {
    const { w, h } = unit;
    if (unit.kind === "file") {
      const fold = 11;
      return [
        el("path", { class: "body", d: `M4,0H${w - fold}L${w},${fold}V${h - 4}q0,4 -4,4H4q-4,0 -4,-4V4q0,-4 4,-4Z` }),
        el("path", { class: "fold", d: `M${w - fold},0V${fold}H${w}` }),
      ];
    }
    if (unit.kind === "group") {
      const rx = unit.of === "process" ? h / 2 : 4;
      return [
        el("rect", { class: "body under", x: 8, y: -7, width: w - 8, height: h, rx }),
        el("rect", { class: "body under", x: 4, y: -3.5, width: w - 4, height: h, rx }),
        el("rect", { class: "body", width: w, height: h, rx }),
      ];
    }
    if (unit.kind === "process")
      return [el("rect", { class: "body", width: w, height: h, rx: h / 2 })];
    if (unit.kind === "stub")
      return [el("rect", { class: "body", width: w, height: h, rx: 8 })];
    const s = 12;
    return [el("path", { class: "body", d: `M${s},0H${w - s}L${w},${h / 2}L${w - s},${h}H${s}L0,${h / 2}Z` })];
  }

  function glyph(unit) {
    const y = HEIGHT / 2;
    if (unit.kind === "process" || unit.of === "process")
      return el("path", { class: "glyph", d: `M16,${y - 5.5}l9,5.5l-9,5.5Z` });
    if (unit.kind === "group")
      return el("path", { class: "glyph line", d: `M12,${y - 5}h11M12,${y}h11M12,${y + 5}h7` });
    if (["file", "stub", "execution"].includes(unit.kind)) return null;
    return el("path", { class: "glyph line", d: `M14,${y - 3}h11m-3.5,-3.5l3.5,3.5M25,${y + 4}h-11m3.5,-3.5l-3.5,3.5` });
  }

  function handle(unit, side) {
    const { hidden, open, any } = unit[side] || {};
    if (unit.kind === "stub" || !any || (!hidden && !open)) return null;
    const what = side === "<" ? "sources" : "uses";
    const word = hidden ? `+${hidden}` : "−";
    const text = side === "<" ? `‹ ${word}` : `${word} ›`;
    const w = 12 + 6.4 * text.length;
    const label = hidden ? `Show ${hidden} more ${what} of ${unit.title}` : `Hide the ${what} of ${unit.title}`;
    const inset = unit.kind === "process" ? 14 : 6;
    const x = side === "<" ? inset : unit.w - inset - w; // on the lower edge: arrows end at the sides
    return el("g", { class: hidden ? "handle" : "handle quiet", "data-side": side, "aria-label": label,
        role: "button", transform: `translate(${x},${unit.h - 8})` },
      el("title", {}, label),
      el("rect", { width: w, height: 16, rx: 8 }),
      el("text", { x: w / 2, y: 12 }, text));
  }

  function node(box, looks) {
    const unit = box.unit;
    const classes = ["node", unit.kind, unit.of || "", unit.family || "", looks].join(" ");
    const label = [unit.kind === "stub" ? "" : unit.of ? `group of ${unit.of}s` : unit.kind, unit.title, unit.sub, unit.mark].filter(Boolean).join(", ");
    const made = el("g", { class: classes, "data-key": unit.key, role: "button", tabindex: -1,
      "aria-label": label, transform: `translate(${box.x.toFixed(1)},${(box.y - box.h / 2).toFixed(1)})` });
    made.append(el("title", {}, unit.where && unit.where !== unit.title ? `${unit.title}\n${unit.where}` : unit.title));
    made.append(el("rect", { class: "ring", x: -4, y: -4, width: unit.w + 8, height: unit.h + 8, rx: unit.kind === "process" || unit.of === "process" ? unit.h / 2 + 4 : 8 }));
    made.append(...shape(unit));
    const left = PAD + unit.lead;
    const mark = glyph(unit);
    if (mark) made.append(mark);
    made.append(el("text", { class: "title", x: left, y: unit.line2 ? 20 : 28 }, unit.line1));
    if (unit.line2) made.append(el("text", { class: "sub", x: left, y: 36 }, unit.line2));
    if (unit.mark) {
      made.append(el("path", { class: "mark", d: `M${left},${52.5}l4.5,-8l4.5,8Z` }));
      made.append(el("text", { class: "mark", x: left + 13, y: 52 }, unit.mark));
    }
    for (const side of "<>") { const it = handle(unit, side); if (it) made.append(it); }
    return made;
  }

  function draw(layer, laid, looks) {
    layer.replaceChildren();
    const lines = el("g", { class: "edges", "aria-hidden": "true" });
    for (const { edge, d } of laid.curves)
      lines.append(el("path", { class: `edge ${edge.kind} ${looks.edge(edge)}`, d, "marker-end": "url(#arrow)" }));
    const nodes = el("g", { class: "nodes" });
    for (const box of laid.boxes) nodes.append(node(box, looks.unit(box.unit)));
    layer.append(lines, nodes);
  }

  return { draw, measure, el };
})();
