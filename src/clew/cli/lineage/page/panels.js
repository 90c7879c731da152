"use strict";
/* Everything beside the drawing: the details of what is selected, the table, the search. */
const make = (name, attributes, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick") made.onclick = value;
    else if (value !== undefined && value !== false) made.setAttribute(key, value);
  }
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
};

const Panel = (() => {
  let act = null;
  const KINDS = { file: "file", process: "process", execution: "execution" };

  function links(heading, nodes) {
    if (!nodes.length) return null;
    const shown = nodes.slice(0, 200);
    return make("section", {}, make("h3", {}, `${heading} `, make("span", { class: "count" }, String(nodes.length))),
      make("ul", { class: "links" }, ...shown.map((node) =>
        make("li", {}, make("button", { class: `link ${node.kind}`, onclick: () => act.go(node), title: node.where || node.title },
          make("span", { class: "name" }, node.title), make("span", { class: "sub" }, node.sub))))),
      nodes.length > shown.length ? make("p", { class: "muted" }, `… and ${nodes.length - shown.length} more in the table`) : null);
  }

  function pathBox(model, state) {
    if (!state.a) return null;
    const found = state.b && Model.between(state.a, state.b);
    const text = !state.b ? "Now choose the other end: click it, or search for it and press Enter."
      : found ? `${found.nodes.size} steps and files lie between them, ends included.`
      : "Neither comes from the other.";
    return make("section", { class: "path", "aria-live": "polite" }, make("h3", {}, "Path"),
      make("p", {}, make("b", {}, state.a.title), " → ", make("b", {}, state.b ? state.b.title : "?")),
      make("p", { class: "muted" }, text), make("button", { onclick: act.noPath }, "Clear the path"));
  }

  function overview(model) {
    const count = (kind) => model.nodes.filter((n) => n.kind === kind).length;
    return [make("p", { class: "kind" }, "Nothing selected"), make("h2", {}, "What this shows"),
      make("p", {}, model.doc.explanation),
      make("dl", {}, make("dt", {}, "Files"), make("dd", {}, String(count("file"))),
        make("dt", {}, "Processes"), make("dd", {}, String(count("process")))),
      make("p", { class: "muted" }, "Click a file or a process for its details. Click +n at its side to follow it further. Shift-click a second one to see the path between the two."),
      make("h3", {}, "Keys"),
      make("dl", { class: "keys" }, ...[["arrows", "move"], ["Enter", "details"], ["+ −", "follow, fold"], ["/", "search"], ["f", "fit"], ["t", "table"], ["a", "all"], ["s", "start again"], ["Esc", "clear"]]
        .flatMap(([key, what]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)]))];
  }

  function details(unit, state) {
    const out = [make("p", { class: `kind ${unit.kind}` }, unit.of ? `group of ${unit.of === "process" ? "processes" : unit.of + "s"}` : KINDS[unit.kind] || unit.kind), make("h2", {}, unit.title)];
    if (unit.mark) out.push(make("p", { class: "warn" }, `▲ ${unit.mark}`));
    if (unit.kind === "group") {
      out.push(make("p", { class: "muted" }, unit.sub),
        make("p", { class: "buttons" }, make("button", { onclick: () => act.ungroup(unit) }, "Draw them one by one")),
        links("Members", unit.members));
      return out;
    }
    const rows = unit.facts.flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, value)]);
    out.push(make("dl", {}, ...rows));
    out.push(make("p", { class: "buttons" },
      make("button", { onclick: () => act.go(unit) }, "Centre"),
      state.a && !state.b && state.a !== unit ? make("button", { onclick: () => act.pathTo(unit) }, "Path to here")
        : make("button", { onclick: () => act.pathFrom(unit) }, "Path from here"),
      unit.group ? make("button", { onclick: () => act.regroup(unit.group) }, "Back into its group") : null));
    const say = unit.kind === "file" ? ["Made by", "Read by"] : ["Came in", "Went out"];
    const uniq = (nodes) => [...new Set(nodes)];
    const same = (e) => e.kind === "same_content", seen = (e) => !same(e);
    out.push(links(say[0], uniq(unit.ins.filter(seen).map((e) => e.a))), links(say[1], uniq(unit.outs.filter(seen).map((e) => e.b))),
      links("Same bytes as (not observed)", uniq(unit.ins.filter(same).map((e) => e.a))),
      links("Same bytes in (not observed)", uniq(unit.outs.filter(same).map((e) => e.b))));
    return out;
  }

  function render(model, state) {
    const body = state.select ? details(state.select, state) : overview(model);
    document.getElementById("panel").replaceChildren(...[pathBox(model, state), ...body].filter(Boolean));
  }

  return { render, connect(actions) { act = actions; } };
})();

const Table = (() => {
  let act = null, matches = null;
  const MOST = 1000;
  const COLUMNS = [["Kind", (n) => n.kind], ["Name", (n) => n.where || n.title], ["Execution", (n) => n.execution || ""],
    ["Size", (n) => n.size ?? -1], ["Came from", (n) => n.ins.length], ["Went into", (n) => n.outs.length], ["About", (n) => n.about || ""]];

  function compare(a, b) {
    return typeof a === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  }

  function names(edges, end) {
    const first = edges.slice(0, 2).map((e) => e[end].title).join(", ");
    return edges.length > 2 ? `${first} and ${edges.length - 2} more` : first;
  }

  function row(node, state) {
    return make("tr", { class: node === state.select ? "selected" : false },
      make("td", {}, make("span", { class: `tag ${node.kind}` }, node.kind)),
      make("td", {}, make("button", { class: "link", onclick: () => act.select(node) }, node.where || node.title),
        node.mark ? make("span", { class: "warn" }, ` ▲ ${node.mark}`) : null),
      make("td", {}, node.execution || ""), make("td", { class: "number" }, node.size_text || ""),
      make("td", {}, names(node.ins, "a")), make("td", {}, names(node.outs, "b")), make("td", {}, node.about || ""));
  }

  function render(model, state) {
    let rows = state.q ? model.nodes.filter((n) => matches(n, state.q)) : [...model.nodes];
    if (state.sort) {
      const value = COLUMNS[state.sort.column][1];
      rows.sort((a, b) => compare(value(a), value(b)) * (state.sort.up ? 1 : -1));
    }
    const head = make("tr", {}, ...COLUMNS.map(([name], i) => {
      const on = state.sort && state.sort.column === i;
      return make("th", { scope: "col", "aria-sort": on ? (state.sort.up ? "ascending" : "descending") : "none" },
        make("button", { onclick: () => act.sort(i) }, `${name}${on ? (state.sort.up ? " ▲" : " ▼") : ""}`));
    }));
    const total = rows.length;
    rows = rows.slice(0, MOST);
    document.getElementById("table-view").replaceChildren(
      make("table", {}, make("caption", {}, total > MOST ? `The first ${MOST} of ${total}; search to see others` : `${total} of ${model.nodes.length} files and processes`),
        make("thead", {}, head), make("tbody", {}, ...rows.map((node) => row(node, state)))));
  }

  return { render, connect(actions, match) { act = actions; matches = match; } };
})();

const Search = (() => {
  const box = document.getElementById("search"), list = document.getElementById("matches");
  let found = [];

  function connect(model, current, act, matches, paint) {
    box.value = current().q;
    const close = () => { list.hidden = true; box.setAttribute("aria-expanded", "false"); };
    const go = (node) => {
      close();
      const { a, b } = current();
      if (a && !b && node !== a) act.pathTo(node);
      else if (current().view === "table") act.select(node);
      else act.go(node);
    };
    const show = () => {
      const { q } = current();
      found = q ? model.nodes.filter((node) => matches(node, q)) : [];
      list.replaceChildren(...found.slice(0, 12).map((node) => make("li", {},
        make("button", { class: `link ${node.kind}`, onclick: () => go(node) }, make("span", { class: "name" }, node.title), make("span", { class: "sub" }, `${node.kind} · ${node.where || node.sub}`)))),
        make("li", { class: "muted", "aria-live": "polite" }, found.length > 12 ? `… ${found.length - 12} more` : found.length ? "" : "nothing found"));
      list.hidden = !q || current().view === "table";
      box.setAttribute("aria-expanded", String(!list.hidden));
    };
    box.addEventListener("input", () => { current().q = box.value.trim(); paint(); show(); });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && found.length) go(found[0]);
      if (event.key === "ArrowDown" && !list.hidden) { event.preventDefault(); list.querySelector("button")?.focus(); }
    });
    list.addEventListener("keydown", (event) => {
      const all = [...list.querySelectorAll("button")], at = all.indexOf(document.activeElement);
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        (all[at + (event.key === "ArrowDown" ? 1 : -1)] || box).focus();
      }
      if (event.key === "Escape") { close(); box.focus(); event.stopPropagation(); }
    });
    document.addEventListener("pointerdown", (event) => { if (!event.target.closest(".finder")) close(); });
    Search.render = close;
  }

  return { connect, render() {} };
})();
