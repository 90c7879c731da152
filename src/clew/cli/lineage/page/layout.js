"use strict";
/* A layered drawing, left to right: layers by longest path, order within a layer by repeated
   barycentres, heights by least squares under "no overlap". Pure: sizes and edges go in,
   positions and curves come out. Edges that would close a circle are turned for the layering. */
const Layout = (() => {
  const GAP_X = 46, GAP_Y = 14, SWEEPS = 14;

  function arrange(units, edges) {
    const boxes = units.map((unit, i) => ({ unit, w: unit.w, h: unit.h, ins: [], outs: [], i }));
    const at = new Map(boxes.map((box) => [box.unit.key, box]));
    const links = pairs(edges, at);
    for (const link of turnCircles(boxes, links)) {
      link.from.outs.push(link.to);
      link.to.ins.push(link.from);
    }
    const layers = layering(boxes);
    const chains = insertBends(links, layers);
    order(layers);
    place(layers);
    return { boxes, curves: curves(edges, at, chains), ...extent(boxes) };
  }

  function pairs(edges, at) {
    const links = new Map();
    for (const edge of edges) {
      const a = at.get(edge.a.key), b = at.get(edge.b.key);
      const key = `${a.i},${b.i}`;
      if (!links.has(key) && a !== b) links.set(key, { key, a, b, from: a, to: b });
    }
    return [...links.values()];
  }

  function turnCircles(boxes, links) {
    const out = new Map(boxes.map((box) => [box, []]));
    for (const link of links) out.get(link.a).push(link);
    const mark = new Map();
    for (const root of boxes) {
      if (mark.has(root)) continue;
      mark.set(root, 1);
      const stack = [{ box: root, next: 0 }];
      while (stack.length) {
        const top = stack[stack.length - 1];
        const link = out.get(top.box)[top.next++];
        if (!link) { mark.set(top.box, 2); stack.pop(); continue; }
        if (mark.get(link.b) === 1) { link.from = link.b; link.to = link.a; }
        else if (!mark.has(link.b)) { mark.set(link.b, 1); stack.push({ box: link.b, next: 0 }); }
      }
    }
    return links;
  }

  function layering(boxes) {
    const waiting = new Map(boxes.map((box) => [box, box.ins.length]));
    const sorted = boxes.filter((box) => !box.ins.length);
    for (const box of sorted) box.layer = 0;
    for (let i = 0; i < sorted.length; i++)
      for (const next of sorted[i].outs) {
        next.layer = Math.max(next.layer || 0, sorted[i].layer + 1);
        waiting.set(next, waiting.get(next) - 1);
        if (!waiting.get(next)) sorted.push(next);
      }
    for (const box of sorted.reverse()) // what nobody made stands next to its first reader
      if (!box.ins.length && box.outs.length)
        box.layer = Math.min(...box.outs.map((other) => other.layer)) - 1;
    const layers = [];
    for (const box of boxes) (layers[box.layer] ||= []).push(box);
    for (let i = 0; i < layers.length; i++) layers[i] ||= [];
    return layers;
  }

  /* An edge over several layers bends through a place of its own in each, so it crosses nothing. */
  function insertBends(links, layers) {
    const chains = new Map();
    for (const box of layers.flat()) { box.ins = []; box.outs = []; }
    for (const link of links) {
      const chain = [link.from];
      for (let layer = link.from.layer + 1; layer < link.to.layer; layer++) {
        const bend = { w: 0, h: 4, ins: [], outs: [], layer, bend: true };
        layers[layer].push(bend);
        chain.push(bend);
      }
      chain.push(link.to);
      for (let i = 1; i < chain.length; i++) {
        chain[i - 1].outs.push(chain[i]);
        chain[i].ins.push(chain[i - 1]);
      }
      chains.set(link.key, link.from === link.a ? chain : [...chain].reverse());
    }
    return chains;
  }

  function order(layers) {
    layers.forEach(number);
    let best = layers.map((layer) => [...layer]), fewest = crossings(layers);
    for (let sweep = 0; sweep < SWEEPS && fewest; sweep++) {
      const down = sweep % 2 === 0;
      const run = down ? layers : [...layers].reverse();
      for (const layer of run) {
        for (const box of layer) {
          const near = down ? box.ins : box.outs;
          box.pull = near.length ? near.reduce((s, n) => s + n.rank, 0) / near.length : box.rank;
        }
        layer.sort((a, b) => a.pull - b.pull || a.rank - b.rank);
        number(layer);
      }
      const now = crossings(layers);
      if (now < fewest) { fewest = now; best = layers.map((layer) => [...layer]); }
    }
    best.forEach((layer, i) => { layers[i] = layer; number(layer); });
  }

  function number(layer) {
    layer.forEach((box, i) => { box.rank = i / Math.max(1, layer.length - 1); box.n = i; });
  }

  function crossings(layers) {
    let count = 0;
    for (const layer of layers) {
      const ends = [];
      for (const box of layer) ends.push(...box.outs.map((o) => o.n).sort((a, b) => a - b));
      const tree = new Array(2 + Math.max(0, ...ends)).fill(0);
      for (let k = ends.length - 1; k >= 0; k--) {
        for (let i = ends[k]; i > 0; i -= i & -i) count += tree[i];
        for (let i = ends[k] + 1; i < tree.length; i += i & -i) tree[i]++;
      }
    }
    return count;
  }

  function place(layers) {
    let x = 0;
    for (const layer of layers) {
      const width = Math.max(0, ...layer.map((box) => box.w));
      let y = 0;
      for (const box of layer) {
        box.x = x + (width - box.w) / 2;
        box.span = [x, x + width]; // a bend goes straight through its column: it passes no box
        box.y = y + box.h / 2;
        y += box.h + GAP_Y;
      }
      x += width + GAP_X;
    }
    for (let sweep = 0; sweep < 16; sweep++) {
      const side = ["ins", "outs", "both"][sweep >= 12 ? 2 : sweep % 2];
      for (const layer of sweep % 2 ? [...layers].reverse() : layers) settle(layer, side);
    }
  }

  /* Pool adjacent violators: the heights nearest to where the neighbours pull, without overlap. */
  function settle(layer, side) {
    const pools = [];
    let offset = 0;
    layer.forEach((box, i) => {
      if (i) offset += (layer[i - 1].h + box.h) / 2 + gap(layer[i - 1], box);
      box.offset = offset;
      const near = side === "both" ? [...box.ins, ...box.outs] : box[side];
      let weight = 0, sum = 0;
      for (const other of near) {
        const pull = box.bend && other.bend ? 6 : box.bend || other.bend ? 2 : 1;
        weight += pull;
        sum += pull * other.y;
      }
      const wish = weight ? sum / weight : box.y;
      weight ||= 0.05;
      let pool = { weight, at: wish - offset, boxes: [box] };
      while (pools.length && pools[pools.length - 1].at > pool.at) {
        const last = pools.pop();
        const both = last.weight + pool.weight;
        pool = { weight: both, boxes: [...last.boxes, ...pool.boxes],
          at: (last.at * last.weight + pool.at * pool.weight) / both };
      }
      pools.push(pool);
    });
    for (const pool of pools) for (const box of pool.boxes) box.y = pool.at + box.offset;
  }

  function gap(a, b) {
    return a.bend && b.bend ? 5 : a.bend || b.bend ? 9 : GAP_Y;
  }

  function curves(edges, at, chains) {
    return edges.map((edge) => {
      const a = at.get(edge.a.key), b = at.get(edge.b.key);
      const chain = chains.get(`${a.i},${b.i}`);
      const back = a.layer > b.layer;
      const points = chain.flatMap((box, i) => {
        if (i === 0) return [[back ? box.x : box.x + box.w, box.y]];
        if (i === chain.length - 1) return [[back ? box.x + box.w : box.x, box.y]];
        const [left, right] = box.span;
        return back ? [[right, box.y], [left, box.y]] : [[left, box.y], [right, box.y]];
      });
      return { edge, d: path(points), points };
    });
  }

  function path(points) {
    let d = `M${round(points[0])}`;
    for (let i = 1; i < points.length; i++) {
      const [x0, y0] = points[i - 1], [x1, y1] = points[i];
      const half = (x1 - x0) / 2;
      d += `C${round([x0 + half, y0])} ${round([x1 - half, y1])} ${round([x1, y1])}`;
    }
    return d;
  }

  function round([x, y]) {
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  }

  function extent(boxes) {
    const left = Math.min(...boxes.map((b) => b.x)), right = Math.max(...boxes.map((b) => b.x + b.w));
    const top = Math.min(...boxes.map((b) => b.y - b.h / 2));
    const bottom = Math.max(...boxes.map((b) => b.y + b.h / 2));
    return { left, top, width: right - left, height: bottom - top };
  }

  return { arrange };
})();
