"use strict";
/* What is known and what is shown. No drawing here: a document and a view state go in, the
   units to draw (files, processes, groups of like files, stubs for the rest) come out. */
const Model = (() => {
  const GROUP_FROM = 5; // this many nodes that play the same part stand as one
  const FAN = 12; // this many neighbours are drawn on one side before the rest becomes a stub
  const OWN_FAN = 24; // with more of the user's own files or processes on one side, less alike ones stand as one

  function build(doc) {
    const byId = new Map();
    const nodes = doc.nodes.map((node, index) => {
      const made = { ...node, index, key: String(index), ins: [], outs: [] };
      byId.set(node.id, made);
      return made;
    });
    const edges = [];
    for (const edge of doc.edges) {
      const a = byId.get(edge.from), b = byId.get(edge.to);
      if (!a || !b || a === b) continue;
      const made = { a, b, kind: edge.kind };
      edges.push(made);
      a.outs.push(made);
      b.ins.push(made);
    }
    const targets = new Set(doc.targets);
    const target = nodes.find((node) => targets.has(node.id)) || nodes[0];
    let groups;
    for (const like of LIKENESS) {
      groups = groupsOf(nodes, targets, like);
      if (nodes.every((node) => ownUnits(node.ins, "a") <= OWN_FAN && ownUnits(node.outs, "b") <= OWN_FAN)) break;
    }
    return { doc, nodes, edges, target, targets, groups };
  }

  /* Which nodes are alike, from narrow to wide: until the user's own fit into a drawing. */
  const LIKENESS = [
    (node) => node.like,
    (node) => (isOwn(node) && node.kind === "file" ? `own ${directoryOf([node])}` : node.like),
    (node) => (isOwn(node) ? `own ${node.kind}` : node.like),
  ];

  function ownUnits(edges, end) {
    return new Set(edges.map((edge) => edge[end]).filter(isOwn).map((node) => node.group || node)).size;
  }

  /* Nodes that play the same part stand as one: the same kind of thing, made from the same kinds
     and gone into the same kinds, as far as the graph reaches. Found by refining classes until
     they no longer split. What was asked for, or carries a mark or a source, stands alone. */
  function groupsOf(nodes, targets, like) {
    let classes = numbered(nodes.map((n) => (targets.has(n.id) || n.mark || n.alone ? `${n.key}!` : like(n))));
    for (let count = 0; count !== classes.count; ) {
      count = classes.count;
      const of = classes.of;
      const around = (edges, end) => [...new Set(edges.map((e) => of[e[end].index]))].sort((x, y) => x - y).join();
      classes = numbered(nodes.map((n) => `${of[n.index]}<${around(n.ins, "a")}>${around(n.outs, "b")}`));
    }
    const members = new Map();
    for (const node of nodes) {
      const number = classes.of[node.index];
      if (!members.has(number)) members.set(number, []);
      members.get(number).push(node);
    }
    const groups = new Map();
    for (const node of nodes) node.group = null;
    for (const alike of members.values()) {
      if (alike.length < GROUP_FROM) continue;
      const group = { key: `g${alike[0].index}`, kind: "group", of: alike[0].kind, family: alike[0].family, members: alike, ...captionOf(alike) };
      groups.set(group.key, group);
      for (const member of alike) member.group = group;
    }
    return groups;
  }

  function numbered(names) {
    const known = new Map();
    const of = names.map((name) => known.get(name) ?? (known.set(name, known.size), known.size - 1));
    return { of, count: known.size };
  }

  function captionOf(members) {
    const first = members[0];
    if (first.kind === "process") return { title: `${members.length} × ${first.program}`, sub: `such as ${first.title}` };
    if (first.kind !== "file") return { title: `${members.length} × ${first.kind}`, sub: `such as ${first.title}` };
    const packages = new Set(members.map((m) => m.package_name).filter(Boolean));
    const files = `${members.length} files`;
    if (packages.size === 1) return { title: files, sub: `of ${[...packages][0]}` };
    if (packages.size > 1) return { title: files, sub: `of ${packages.size} packages` };
    if (members[0].family === "system") return { title: files, sub: "of the system" };
    return { title: files, sub: `in ${directoryOf(members)}` };
  }

  function directoryOf(members) {
    let shared = members[0].where.split("/").slice(0, -1);
    for (const member of members) {
      const parts = member.where.split("/");
      let i = 0;
      while (i < shared.length && parts[i] === shared[i]) i++;
      shared = shared.slice(0, i);
    }
    return shared.join("/") || (members[0].where.startsWith("/") ? "/" : "this directory");
  }

  /* The unit a node is drawn as: itself, or its group while that stands as one. */
  function unitOf(node, state) {
    return node.group && !state.open.has(node.group.key) ? node.group : node;
  }

  function membersOf(unit) {
    return unit.members || [unit];
  }

  /* Neighbouring units on one side: "<" what it came from, ">" what it went into. */
  function neighbours(unit, side, state) {
    const found = new Map();
    for (const node of membersOf(unit)) {
      for (const edge of side === "<" ? node.ins : node.outs) {
        const other = unitOf(side === "<" ? edge.a : edge.b, state);
        if (other !== unit) found.set(other.key, other);
      }
    }
    return [...found.values()].sort((a, b) => interest(a) - interest(b));
  }

  function interest(unit) {
    if (unit.kind === "group") return interest(unit.members[0]) + 0.5;
    const deep = unit.ins.length && unit.outs.length ? 0 : 1;
    return ["package", "system"].includes(unit.family) ? 2 + deep : deep;
  }

  /* Neither of the system nor of an installed package. */
  function isOwn(unit) {
    return interest(unit) < 2;
  }

  /* How many neighbours, in the order of `neighbours`, are drawn at first: never without the user's own. */
  function cutOf(all) {
    if (all.length <= FAN + 2) return all.length;
    return Math.max(FAN, all.filter(isOwn).length);
  }

  /* Everything to draw in this state: units, stubs, and the edges between what is drawn. */
  function visible(model, state) {
    const shown = new Map();
    const stubs = [];
    const sides = new Map();
    const queue = [];
    const add = (unit) => {
      if (!shown.has(unit.key)) {
        shown.set(unit.key, unit);
        queue.push(unit);
      }
    };
    for (const node of model.nodes) if (model.targets.has(node.id)) add(unitOf(node, state));
    if (!shown.size && model.target) add(unitOf(model.target, state));
    for (let i = 0; i < queue.length; i++) {
      const unit = queue[i];
      for (const side of "<>") {
        const all = neighbours(unit, side, state);
        const key = unit.key + side;
        const full = state.open.has(key + "*");
        const open = full || state.open.has(key);
        const cut = full ? all.length : open ? cutOf(all) : 0;
        all.forEach((other, n) => {
          if (n < cut || membersOf(other).some((m) => state.pin.has(m.key))) add(other);
        });
        sides.set(key, { all, open, cut });
      }
    }
    for (const [key, { all, open, cut }] of sides) {
      const hidden = all.filter((other) => !shown.has(other.key));
      const owner = shown.get(key.slice(0, -1));
      owner[key.slice(-1)] = { hidden: hidden.length, open, any: all.length };
      if (open && cut < all.length && hidden.length) stubs.push(stub(owner, key, hidden));
    }
    return { units: [...shown.values(), ...stubs], edges: edgesOf(model, state, shown, stubs) };
  }

  function stub(owner, key, hidden) {
    const files = hidden.reduce((n, unit) => n + membersOf(unit).length, 0);
    return { key: `s${key}`, kind: "stub", owner, side: key.slice(-1), opens: key + "*",
      title: `… ${files} more`, sub: "click to show them" };
  }

  function edgesOf(model, state, shown, stubs) {
    const found = new Map();
    for (const edge of model.edges) {
      const a = unitOf(edge.a, state), b = unitOf(edge.b, state);
      if (a === b || !shown.has(a.key) || !shown.has(b.key)) continue;
      const key = `${a.key}|${b.key}|${edge.kind}`;
      if (!found.has(key)) found.set(key, { a, b, kind: edge.kind, key });
    }
    for (const it of stubs) {
      const [a, b] = it.side === "<" ? [it, it.owner] : [it.owner, it];
      found.set(it.key, { a, b, kind: "more", key: it.key });
    }
    return [...found.values()];
  }

  /* What to open at first: the nearest neighbourhood of about `limit` units, `steps` steps at least. */
  function firstLook(model, limit, steps) {
    const state = { open: new Set(), pin: new Set() };
    const sides = model.doc.direction === "down" ? ">" : "<";
    let frontier = model.nodes.filter((n) => model.targets.has(n.id)).map((n) => unitOf(n, state));
    const seen = new Set(frontier.map((u) => u.key));
    let count = frontier.length;
    for (let depth = 0; frontier.length; depth++) {
      const next = [];
      for (const unit of frontier) {
        const around = neighbours(unit, sides, state);
        const fresh = around.slice(0, cutOf(around)).filter((u) => !seen.has(u.key));
        if (depth >= steps && count + fresh.length > limit) continue;
        if (around.length) state.open.add(unit.key + sides);
        for (const other of fresh) {
          seen.add(other.key);
          next.push(other);
          count++;
        }
      }
      frontier = next;
    }
    return state.open;
  }

  /* The shortest way between two nodes, over edges one may walk in the given sides. */
  function walk(from, to, sides) {
    const came = new Map([[from, null]]);
    const queue = [from];
    for (let i = 0; i < queue.length; i++) {
      const node = queue[i];
      if (node === to) break;
      const next = [];
      if (sides.includes("<")) next.push(...node.ins.map((e) => e.a));
      if (sides.includes(">")) next.push(...node.outs.map((e) => e.b));
      for (const other of next) if (!came.has(other)) { came.set(other, node); queue.push(other); }
    }
    if (!came.has(to)) return null;
    const way = [];
    for (let node = to; node; node = came.get(node)) way.unshift(node);
    return way;
  }

  function reach(node, side) {
    const seen = new Set([node]);
    const queue = [node];
    for (let i = 0; i < queue.length; i++)
      for (const edge of side === "<" ? queue[i].ins : queue[i].outs) {
        const other = side === "<" ? edge.a : edge.b;
        if (!seen.has(other)) { seen.add(other); queue.push(other); }
      }
    return seen;
  }

  /* Every node on a way from one to the other, whichever came first; null if there is none. */
  function between(a, b) {
    for (const [first, last] of [[a, b], [b, a]]) {
      const after = reach(first, ">");
      if (!after.has(last)) continue;
      const before = reach(last, "<");
      return { nodes: new Set([...after].filter((n) => before.has(n))), way: walk(first, last, ">") };
    }
    return null;
  }

  /* Make a node part of the drawing: open the way to it from the target. */
  function reveal(model, state, node) {
    if (node.group) state.open.add(node.group.key);
    const way = walk(model.target, node, "<>") || [node];
    for (const step of way) {
      state.pin.add(step.key);
      if (step.group) state.open.add(step.group.key);
    }
  }

  return { build, visible, firstLook, unitOf, membersOf, neighbours, between, reveal, reach };
})();
