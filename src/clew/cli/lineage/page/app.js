"use strict";
/* The page: what was clicked and typed becomes state, the state becomes the address (after #) and
   the picture. Whoever opens the same address sees the same view. */
(() => {
  const doc = JSON.parse(document.getElementById("data").textContent);
  const model = Model.build(doc);
  const $ = (id) => document.getElementById(id);
  const svg = $("drawing"), world = $("world");
  const ABOVE = 56, BELOW = 74; // the legend and the tools cover these strips of the drawing
  const READABLE = 0.4; // the smallest scale at which labels can be read
  let state = read();
  let laid = null, focusKey = null, dirty = true;

  /* ---- state and address ---- */
  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const set = (name) => new Set((given.get(name) || "").split(".").filter(Boolean));
    const node = (name) => (given.has(name) ? model.nodes[+given.get(name)] || null : null);
    const at = (given.get("at") || "").split(",").map(Number);
    const sort = (given.get("sort") || "").split(".");
    return {
      view: given.get("view") === "table" ? "table" : "drawing",
      open: given.has("open") ? set("open") : firstLook(),
      pin: set("pin"), select: node("select") || model.groups.get(given.get("select")) || null,
      a: node("a"), b: node("b"), q: given.get("q") || "",
      at: at.length === 3 && at.every(Number.isFinite) ? at : null,
      sort: sort.length === 2 ? { column: +sort[0], up: sort[1] === "up" } : null,
      touched: given.has("open"),
    };
  }

  function write() {
    const out = new URLSearchParams();
    if (state.view !== "drawing") out.set("view", state.view);
    if (state.select) out.set("select", state.select.key);
    if (state.a) out.set("a", state.a.key);
    if (state.b) out.set("b", state.b.key);
    if (state.q) out.set("q", state.q);
    if (state.touched) out.set("open", [...state.open].join("."));
    if (state.pin.size) out.set("pin", [...state.pin].join("."));
    if (state.at) out.set("at", state.at.map((n) => +n.toFixed(3)).join(","));
    if (state.sort) out.set("sort", `${state.sort.column}.${state.sort.up ? "up" : "down"}`);
    const text = out.toString();
    if (text !== location.hash.slice(1)) history.replaceState(null, "", `#${text}`);
  }

  /* As much of the neighbourhood as the window shows readably. */
  function firstLook() {
    for (const [limit, steps] of [[44, 2], [28, 2], [16, 1], [0, 1]]) {
      const open = Model.firstLook(model, limit, steps);
      if (limit === 0 || scaleOf(arrange({ open, pin: new Set() }).laid) >= READABLE) return open;
    }
  }

  /* ---- drawing ---- */
  function arrange(state) {
    const { units, edges } = Model.visible(model, state);
    units.forEach(Drawing.measure);
    return { units, laid: Layout.arrange(units, edges) };
  }

  /* The scale at which a drawing fills the window. */
  function scaleOf({ width, height }) {
    const { clientWidth: w, clientHeight: h } = svg;
    return w && h ? Math.min(1.2, (w - 56) / width, (h - ABOVE - BELOW) / height) : 1;
  }

  function path() {
    return state.a && state.b ? Model.between(state.a, state.b) : null;
  }

  function looks() {
    const way = path();
    const on = (unit) => way && Model.membersOf(unit).some((m) => way.nodes.has(m));
    const near = (edge) => state.select && (edge.a === state.select || edge.b === state.select);
    return {
      unit: (unit) => [
        model.targets.has(unit.id) ? "target" : "", unit === state.select ? "selected" : "",
        unit === state.a || unit === state.b ? "end" : "",
        way ? (on(unit) ? "on" : "off") : "", hit(unit) ? "hit" : ""].join(" "),
      edge: (edge) => (way ? (on(edge.a) && on(edge.b) ? "on" : "off") : near(edge) ? "near" : ""),
    };
  }

  function hit(unit) {
    return state.q.length > 1 && unit.kind !== "stub" && Model.membersOf(unit).some((n) => matches(n, state.q));
  }

  function paint() {
    if (dirty) {
      const { units, laid: made } = arrange(state);
      laid = made;
      dirty = false;
      const drawn = units.filter((u) => u.kind !== "stub");
      const count = drawn.reduce((n, unit) => n + Model.membersOf(unit).length, 0);
      $("shown").textContent = `${count} of ${model.nodes.length}${count > drawn.length ? `, as ${drawn.length}` : ""}`;
    }
    Drawing.draw(world, laid, looks());
    const keep = boxOf(focusKey) || boxOf(state.select && state.select.key) || boxOf(model.target.key) || laid.boxes[0];
    const first = world.querySelector(`[data-key="${CSS.escape(keep.unit.key)}"]`);
    if (first) first.setAttribute("tabindex", "0");
    if (!state.at) fit(); else move();
    Panel.render(model, state);
    if (state.view === "table") Table.render(model, state);
    for (const view of ["drawing", "table"]) {
      $(`${view}-view`).hidden = state.view !== view;
      $(`to-${view}`).setAttribute("aria-pressed", state.view === view);
    }
    write();
  }

  const boxOf = (key) => laid.boxes.find((box) => box.unit.key === key);

  function move() {
    const [x, y, k] = state.at;
    world.setAttribute("transform", `translate(${x},${y}) scale(${k})`);
    $("zoom").textContent = `${Math.round(k * 100)} %`;
  }

  function fit() {
    const { clientWidth: w, clientHeight: h } = svg;
    if (!w || !h) return;
    const k = scaleOf(laid);
    state.at = [
      (w - laid.width * k) / 2 - laid.left * k,
      ABOVE + (h - ABOVE - BELOW - laid.height * k) / 2 - laid.top * k, k];
    move();
  }

  function centre(key) {
    const box = boxOf(key);
    if (!box || state.view !== "drawing") return;
    const k = Math.max(state.at[2], 0.8);
    state.at = [svg.clientWidth / 2 - (box.x + box.w / 2) * k, svg.clientHeight / 2 - box.y * k, k];
    move();
    write();
  }

  function zoom(factor, cx = svg.clientWidth / 2, cy = svg.clientHeight / 2) {
    const [x, y, k] = state.at;
    const next = Math.max(0.08, Math.min(3, k * factor));
    state.at = [cx - ((cx - x) * next) / k, cy - ((cy - y) * next) / k, next];
    move();
    write();
  }

  /* Keep `key` where it is on the screen while the drawing around it changes. */
  function change(key, act) {
    const before = boxOf(key);
    act();
    state.touched = true;
    dirty = true;
    const was = before && [before.x, before.y];
    paint();
    const after = boxOf(key);
    if (was && after) {
      state.at = [state.at[0] - (after.x - was[0]) * state.at[2], state.at[1] - (after.y - was[1]) * state.at[2], state.at[2]];
      move();
      write();
    }
  }

  /* ---- what a person can do ---- */
  const act = {
    select(unit) {
      if (unit && unit.kind === "stub") return change(unit.owner.key, () => state.open.add(unit.opens));
      if (unit && state.a && !state.b && unit !== state.a && unit.kind !== "group") return act.pathTo(unit);
      state.select = unit;
      if (unit) focusKey = unit.key;
      paint();
    },
    side(unit, side) {
      const key = unit.key + side, { hidden } = unit[side];
      change(unit.key, () => {
        if (hidden) state.open.add(state.open.has(key) ? key + "*" : key);
        else for (const it of [key, key + "*"]) state.open.delete(it);
        if (!hidden) for (const other of Model.neighbours(unit, side, state))
          for (const member of Model.membersOf(other)) state.pin.delete(member.key);
      });
    },
    ungroup(group) { change(null, () => { state.open.add(group.key); if (state.select === group) state.select = null; }); },
    regroup(group) { change(null, () => { state.open.delete(group.key); state.select = group; }); },
    go(node) {
      if (!laid || !boxOf(node.key)) change(null, () => Model.reveal(model, state, node));
      state.select = node;
      focusKey = node.key;
      paint();
      centre(node.key);
    },
    pathFrom(node) { state.a = node; state.b = null; paint(); },
    pathTo(node) {
      state.b = node;
      const way = path();
      change(node.key, () => { if (way) for (const step of way.way) { state.pin.add(step.key); if (step.group) state.open.add(step.group.key); } });
      state.select = node;
      state.at = null;
      paint();
    },
    noPath() { state.a = state.b = null; paint(); },
    view(view) { state.view = view; paint(); },
    everything() {
      change(null, () => {
        const sides = [];
        for (const unit of [...model.nodes, ...model.groups.values()]) sides.push(unit.key + "<", unit.key + ">");
        state.open = new Set([...[...state.open].filter((k) => k.startsWith("g") && !/[<>]/.test(k)), ...sides]);
      });
      state.at = null;
      paint();
    },
    start() { change(null, () => { state.open = firstLook(); state.pin = new Set(); }); state.touched = false; state.at = null; paint(); },
    sort(column) {
      state.sort = { column, up: !(state.sort && state.sort.column === column && state.sort.up) };
      paint();
    },
  };

  const unitAt = (target) => {
    const g = target.closest && target.closest("[data-key]");
    const box = g && boxOf(g.dataset.key);
    return box && box.unit;
  };

  let dragged = false;
  svg.addEventListener("click", (event) => {
    if (dragged) return;
    const unit = unitAt(event.target), handle = event.target.closest(".handle");
    if (handle) act.side(unit, handle.dataset.side);
    else if (unit && event.shiftKey && state.select && state.select.kind !== "group" && unit.kind !== "group") {
      state.a = state.select;
      act.pathTo(unit);
    } else act.select(unit || null);
  });
  svg.addEventListener("dblclick", (event) => {
    const unit = unitAt(event.target);
    if (unit && unit.kind === "group") act.ungroup(unit);
  });

  const pointers = new Map();
  svg.addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, event); dragged = false; });
  addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    if (!dragged && Math.hypot(dx, dy) < 4 && pointers.size === 1) return;
    dragged = true;
    if (pointers.size === 2) {
      const [other] = [...pointers.values()].filter((p) => p.pointerId !== event.pointerId);
      const gap = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY);
      const frame = svg.getBoundingClientRect();
      zoom(gap(event) / gap(before), (event.clientX + other.clientX) / 2 - frame.left, (event.clientY + other.clientY) / 2 - frame.top);
    } else {
      state.at = [state.at[0] + dx, state.at[1] + dy, state.at[2]];
      move();
    }
    pointers.set(event.pointerId, event);
  });
  for (const end of ["pointerup", "pointercancel"])
    addEventListener(end, (event) => { if (pointers.delete(event.pointerId) && dragged) write(); });
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const frame = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });

  /* ---- keyboard ---- */
  function step(unit, key) {
    const box = boxOf(unit.key);
    if (key === "ArrowUp" || key === "ArrowDown") {
      const column = laid.boxes.filter((b) => b.layer === box.layer).sort((a, b) => a.y - b.y);
      return column[column.indexOf(box) + (key === "ArrowUp" ? -1 : 1)];
    }
    const left = key === "ArrowLeft";
    const ends = laid.curves.filter((c) => (left ? c.edge.b : c.edge.a) === unit).map((c) => boxOf((left ? c.edge.a : c.edge.b).key));
    return ends.sort((a, b) => Math.abs(a.y - box.y) - Math.abs(b.y - box.y))[0];
  }

  svg.addEventListener("keydown", (event) => {
    const unit = unitAt(event.target);
    if (!unit) return;
    const handlesOf = (sides, wanted) => [...sides].find((side) => unit[side] && wanted(unit[side]));
    if (event.key.startsWith("Arrow")) {
      const next = step(unit, event.key);
      if (next) focus(next.unit.key);
    } else if (event.key === "Enter" || event.key === " ") { act.select(unit); focus(focusKey); }
    else if (event.key === "+" || event.key === "=") {
      if (unit.kind === "group") act.ungroup(unit);
      else { const side = handlesOf("<>", (s) => s.hidden); if (side) { act.side(unit, side); focus(unit.key); } }
    } else if (event.key === "-") {
      const side = handlesOf("<>", (s) => s.open && !s.hidden);
      if (side) { act.side(unit, side); focus(unit.key); }
    } else return;
    event.preventDefault();
  });

  function focus(key) {
    focusKey = key;
    for (const old of world.querySelectorAll('[tabindex="0"]')) old.setAttribute("tabindex", "-1");
    const next = world.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!next) return;
    next.setAttribute("tabindex", "0");
    next.focus({ preventScroll: true });
    const seen = next.getBoundingClientRect(), frame = svg.getBoundingClientRect();
    if (seen.left < frame.left || seen.right > frame.right || seen.top < frame.top || seen.bottom > frame.bottom) centre(key);
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, textarea, select");
    if (event.key === "Escape") {
      if (typing && event.target.value) { event.target.value = ""; state.q = ""; paint(); Search.render(model, state, act); }
      else if (typing) event.target.blur();
      else if (state.a) act.noPath();
      else act.select(null);
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { "/": () => $("search").focus(), f: () => { state.at = null; paint(); }, t: () => act.view(state.view === "table" ? "drawing" : "table"), a: act.everything, s: act.start };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });

  /* ---- controls ---- */
  function matches(node, q) {
    return node.text.includes(q.toLowerCase());
  }
  $("to-drawing").onclick = () => act.view("drawing");
  $("to-table").onclick = () => act.view("table");
  $("fit").onclick = () => { state.at = null; paint(); };
  $("in").onclick = () => zoom(1.25);
  $("out").onclick = () => zoom(0.8);
  $("all").onclick = act.everything;
  $("less").onclick = act.start;
  addEventListener("resize", () => { if (!state.touched) { state.at = null; paint(); } });
  addEventListener("hashchange", () => { state = read(); dirty = true; $("search").value = state.q; paint(); });
  Panel.connect(act);
  Table.connect(act, matches);
  Search.connect(model, () => state, act, matches, paint);
  paint();
})();
