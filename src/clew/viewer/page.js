// The page of the viewer. The address holds the view: #/DIR/?show=FILE&sort=size&order=desc
// Names in addresses are as the server wrote them (`href`), so any name works, also one that is not UTF-8.

import { $, ask, attempt, element, formatBytes } from "./dom.js";
import { request } from "./requests.js";
import { addUploads, isUploading } from "./uploads.js";

const MAX_EDITABLE_BYTES = 2 * 2 ** 20;
const PREVIEW_BYTES = 256 * 2 ** 10; // of a text that is too long to edit

const shows = {
  picture: /\.(png|jpe?g|gif|webp|avif|bmp|ico|svg)$/i,
  sound: /\.(mp3|wav|ogg|oga|flac|m4a|opus)$/i,
  film: /\.(mp4|webm|ogv|mov|m4v)$/i,
};

let place = { path: "", show: "", sort: "name", order: "asc" };
let listing = null; // as it was listed last
let chosen = -1;
let open = null; // the file in the preview: {href, etag, text, ends, area}

// -- the address

// The address may come from an attacker: its names stay names, and lead nowhere else.
const named = (href) => { try { return decodeURIComponent(href); } catch { return href; } };
const dots = (part) => /^(\.|%2e){1,2}$/i.test(part);
const clean = (part) => (dots(part) ? "" : /^[\w.~%-]*$/.test(part) ? part : encodeURIComponent(named(part)));

function read() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const asked = new URLSearchParams(query);
  return {
    path: path.split("/").map(clean).filter(Boolean).join("/"),
    show: clean(asked.get("show") ?? ""),
    sort: asked.get("sort") ?? "name",
    order: asked.get("order") ?? "asc",
  };
}

function address(change) {
  const to = { ...place, ...change };
  const query = new URLSearchParams();
  if (to.show) query.set("show", to.show);
  if (to.sort !== "name") query.set("sort", to.sort);
  if (to.order !== "asc") query.set("order", to.order);
  return `#/${to.path ? `${to.path}/` : ""}${query.size ? `?${query}` : ""}`;
}

const go = (change) => { location.hash = address(change); };
const join = (path, href) => (path ? `${path}/${href}` : href);

// -- the directory

const when = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const marks = { folder: "▸", file: "·", link: "↗", other: "?" };
const leads = (entry) => (entry.kind === "link" ? entry.leads : entry.kind);

let lists = 0; // asked for so far: an answer that a later one overtook is dropped

async function list(offset = 0) {
  const mine = lists += 1;
  const query = new URLSearchParams({ sort: place.sort, order: place.order, offset });
  if ($("filter").value) query.set("containing", $("filter").value);
  const found = await (await request(place.path ? `${place.path}/` : "", { query: `?${query}` })).json();
  if (mine !== lists) return;
  if (offset) found.entries = [...listing.entries, ...found.entries];
  listing = found;
  draw();
}

function draw() {
  const parts = place.path ? place.path.split("/") : [];
  $("path").replaceChildren(
    ...[["", "Volume"], ...parts.map((part, i) => [parts.slice(0, i + 1).join("/"), named(part)])].map(
      ([path, name], i) => i === parts.length
        ? element("span", { textContent: name, ariaCurrent: "page" })
        : element("a", { href: address({ path, show: "" }), textContent: name })),
  );
  document.title = parts.length ? named(parts.at(-1)) : "Files";
  for (const head of document.querySelectorAll("th button")) {
    const mine = head.dataset.sort === place.sort;
    head.parentElement.ariaSort = !mine ? "none" : place.order === "desc" ? "descending" : "ascending";
  }
  $("entries").replaceChildren(...listing.entries.map(row));
  const nothing = !listing.entries.length;
  $("empty").hidden = !nothing;
  $("empty").textContent = $("filter").value ? "No name contains this." : "Nothing is here yet. Drop files to upload them.";
  $("more").hidden = listing.entries.length >= listing.total;
  $("count").textContent = `${listing.total} ${listing.total === 1 ? "entry" : "entries"}${listing.writable ? "" : " · read only"}`;
  for (const id of ["make", "send"]) $(id).disabled = !listing.writable;
  choose(Math.min(chosen, listing.entries.length - 1), false);
}

function row(entry, index) {
  const kind = leads(entry);
  const name = kind === "folder"
    ? element("a", { href: address({ path: join(place.path, entry.href), show: "" }), textContent: entry.name })
    : kind === "file"
      ? element("a", { href: address({ show: entry.href }), textContent: entry.name })
      : element("span", { textContent: entry.name });
  name.tabIndex = -1;
  const first = element("td", {}, element("span", { className: "mark", textContent: marks[entry.kind], ariaHidden: "true" }), name);
  if (entry.kind === "link") first.append(element("span", { className: "lead", textContent: kind ? " (link)" : " (leads out of the volume, or nowhere)" }));
  const acts = element("td", { className: "acts" });
  if (kind === "file") acts.append(element("button", { textContent: "Download", onclick: () => download(entry) }), " ");
  if (listing.writable) {
    acts.append(element("button", { textContent: "Rename", onclick: () => rename(entry) }), " ",
      element("button", { textContent: "Delete", onclick: () => remove(entry) }));
  }
  const made = element("tr", { className: entry.kind, tabIndex: -1, onclick: () => choose(index) },
    first,
    element("td", { className: "number", textContent: kind === "file" ? formatBytes(entry.size) : "" }),
    element("td", { className: "when", textContent: when.format(new Date(entry.modified)), title: entry.modified }),
    acts);
  return made;
}

function choose(index, focus = true) {
  const rows = [...$("entries").children];
  chosen = index;
  rows.forEach((one, i) => { one.classList.toggle("chosen", i === index); one.tabIndex = i === Math.max(index, 0) ? 0 : -1; });
  if (focus && rows[index] && !rows[index].contains(document.activeElement)) rows[index].focus({ preventScroll: true });
  if (focus) rows[index]?.scrollIntoView({ block: "nearest" });
}

// -- actions

function enter(entry) {
  const kind = leads(entry);
  if (kind === "folder") go({ path: join(place.path, entry.href), show: "" });
  else if (kind === "file") go({ show: entry.href });
}

function download(entry) {
  element("a", { href: `files/${join(place.path, entry.href)}?save`, download: entry.name }).click();
}

async function rename(entry) {
  const name = await ask(`Rename ${entry.name}`, { value: entry.name, yes: "Rename" });
  if (!name || name === entry.name) return;
  const path = name.startsWith("/")
    ? name.slice(1).split("/").map(encodeURIComponent).join("/")
    : join(place.path, name.split("/").map(encodeURIComponent).join("/"));
  await attempt(async () => {
    await request(join(place.path, entry.href), { method: "POST", query: `?rename=${path}` });
    if (place.show === entry.href) go({ show: "" });
    await list();
  });
}

async function remove(entry) {
  const whole = entry.kind === "folder" ? " and everything in it" : "";
  if (!(await ask(`Delete ${entry.name}${whole}? This cannot be undone.`, { yes: "Delete" }))) return;
  await attempt(async () => {
    await request(join(place.path, entry.href), { method: "DELETE", query: whole ? "?everything=true" : "" });
    if (place.show === entry.href) { open = null; go({ show: "" }); }
    await list();
  });
}

async function make() {
  const name = await ask("New directory", { value: "", yes: "Make" });
  if (!name) return;
  await attempt(async () => {
    await request(join(place.path, encodeURIComponent(name)), { method: "POST", query: "?make=folder" });
    await list();
  });
}

// -- one file

const changed = () => Boolean(open?.area && open.area.value !== open.text);

async function preview() {
  const href = place.show;
  if (open && open.path === place.path && open.href === href) return;
  if (changed() && !(await ask(`Leave ${named(open.href)} without saving?`, { yes: "Leave" }))) {
    history.replaceState(null, "", address({ path: open.path, show: open.href }));
    place = read();
    return;
  }
  open = null;
  $("content").replaceChildren();
  $("save").hidden = true;
  $("preview").hidden = !href;
  if (!href) return;
  const path = join(place.path, href);
  $("shown").textContent = named(href);
  $("fetch").href = `files/${path}?save`;
  open = { path: place.path, href };
  const name = named(href);
  if (shows.picture.test(name)) $("content").append(element("img", { src: `files/${path}`, alt: name }));
  else if (shows.sound.test(name)) $("content").append(element("audio", { src: `files/${path}`, controls: true }));
  else if (shows.film.test(name)) $("content").append(element("video", { src: `files/${path}`, controls: true }));
  else await attempt(() => text(path));
}

async function text(path) {
  const now = open;
  const head = await request(path, { method: "HEAD" });
  const size = Number(head.headers.get("content-length"));
  const whole = size <= MAX_EDITABLE_BYTES;
  const answer = size ? await request(path, whole ? {} : { headers: { Range: `bytes=0-${PREVIEW_BYTES - 1}` } }) : head;
  const data = new Uint8Array(size ? await answer.arrayBuffer() : 0);
  if (open !== now) return;
  let found;
  try {
    found = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data, { stream: !whole });
    if (found.includes("\0")) throw new TypeError();
  } catch {
    $("content").append(element("p", { className: "quiet", textContent: `${formatBytes(size)} that are no text. Download it to see more.` }));
    return;
  }
  const ends = /\r\n/.test(found) ? (/(^|[^\r])\n/.test(found) ? null : "\r\n") : "\n"; // a text area knows only one kind
  const editable = whole && ends !== null && !/\r(?!\n)/.test(found) && listing?.writable;
  if (!editable) {
    const why = whole ? "" : `The first ${formatBytes(data.length)} of ${formatBytes(size)}.`;
    if (why) $("content").append(element("p", { className: "quiet", textContent: why }));
  }
  const area = element("textarea", { value: found, readOnly: !editable, spellcheck: false, ariaLabel: `Text of ${named(now.href)}` });
  Object.assign(now, { etag: answer.headers.get("etag"), text: area.value, ends, area: editable ? area : null, file: path });
  $("content").append(area);
  $("save").hidden = !editable;
}

async function save() {
  if (!open?.area) return;
  const value = open.area.value;
  const body = new Blob([open.ends === "\r\n" ? value.replaceAll("\n", "\r\n") : value]);
  await attempt(async () => {
    const put = (headers) => request(open.file, { method: "PUT", body, headers });
    let answer;
    try {
      answer = await put({ "If-Match": open.etag });
    } catch (problem) {
      if (problem.status !== 412) throw problem;
      if (!(await ask("Somebody else changed it meanwhile. Replace their text by yours?", { yes: "Replace" }))) return;
      answer = await put({});
    }
    open.etag = answer.headers.get("etag");
    open.text = value;
    await list();
  });
}

const upload = (files) => addUploads(files, place.path ? [place.path] : [], () => list());

// -- mouse and keyboard

$("make").onclick = make;
$("send").onclick = () => $("picked").click();
$("picked").onchange = () => { upload([...$("picked").files]); $("picked").value = ""; };
$("more").onclick = () => attempt(() => list(listing.entries.length));
$("close").onclick = () => go({ show: "" });
$("save").onclick = save;
$("filter").oninput = () => { chosen = -1; attempt(() => list()); };
for (const head of document.querySelectorAll("th button")) {
  head.onclick = () => {
    const { sort } = head.dataset;
    const order = place.sort === sort ? (place.order === "asc" ? "desc" : "asc") : sort === "name" ? "asc" : "desc";
    go({ sort, order });
  };
}

document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("over"); });
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("over"); });
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  if (listing?.writable) upload([...event.dataTransfer.files]);
});

document.addEventListener("keydown", (event) => {
  if ($("ask").open) return;
  if ((event.ctrlKey || event.metaKey) && event.key === "s") { event.preventDefault(); save(); return; }
  if (event.key === "Escape") {
    if (document.activeElement === $("filter") && $("filter").value) { $("filter").value = ""; $("filter").oninput(); } else if (place.show) go({ show: "" });
    return;
  }
  const typing = document.activeElement?.matches("input, textarea");
  if (typing && !(document.activeElement === $("filter") && ["ArrowDown", "Enter"].includes(event.key))) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const entry = listing?.entries[chosen];
  const last = (listing?.entries.length ?? 0) - 1;
  const acts = {
    ArrowDown: () => choose(Math.min(chosen + 1, last)),
    ArrowUp: () => choose(Math.max(chosen - 1, 0)),
    Home: () => choose(0),
    End: () => choose(last),
    Backspace: () => place.path && go({ path: place.path.split("/").slice(0, -1).join("/"), show: "" }),
    F2: () => entry && listing.writable && rename(entry),
    Delete: () => entry && listing.writable && remove(entry),
    "/": () => $("filter").focus(),
    n: () => listing?.writable && make(),
    u: () => listing?.writable && $("picked").click(),
  };
  if (event.key === "Enter" && entry && !document.activeElement?.matches("button, a, summary")) { event.preventDefault(); enter(entry); return; }
  if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
});

addEventListener("beforeunload", (event) => { if (changed() || isUploading()) event.preventDefault(); });
addEventListener("hashchange", () => arrive());

async function arrive() {
  const before = place;
  place = read();
  if (before.path !== place.path) { chosen = -1; $("filter").value = ""; }
  await attempt(async () => {
    if (!listing || before.path !== place.path || before.sort !== place.sort || before.order !== place.order) await list();
    else draw();
    await preview();
  });
}

arrive();
