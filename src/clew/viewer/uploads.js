// Uploads: a file is sent in parts, of which a lost connection repeats at most one.

import { $, ask, element, formatBytes } from "./dom.js";
import { request, RequestError } from "./requests.js";

const PART_BYTES = 32 * 2 ** 20;
const CONCURRENT = 2;
const MAX_TRIES = 8;

const waiting = [];
let active = 0;

export const isUploading = () => active > 0;

export function addUploads(files, directory, whenDone) {
  for (const file of files) {
    const line = element("div", { className: "upload" });
    const bar = element("progress", { max: file.size || 1, value: 0, ariaLabel: `Upload of ${file.name}` });
    const status = element("span", { className: "said quiet", textContent: "waits" });
    const upload = { file, path: [...directory, encodeURIComponent(file.name)].join("/"), line, bar, status, whenDone, stop: new AbortController() };
    const cancel = element("button", { textContent: "Cancel", onclick: () => upload.stop.abort() });
    line.append(element("span", { className: "name", textContent: file.name }), bar, status, cancel);
    $("uploads").append(line);
    waiting.push(upload);
  }
  $("uploads").hidden = false;
  startNext();
}

function startNext() {
  while (active < CONCURRENT && waiting.length) {
    active += 1;
    perform(waiting.shift()).finally(() => { active -= 1; startNext(); });
  }
}

async function perform(upload) {
  try {
    await sendParts(upload);
    upload.bar.value = upload.bar.max;
    upload.status.textContent = formatBytes(upload.file.size);
    await upload.whenDone();
  } catch (problem) {
    upload.line.classList.add("failed");
    upload.status.textContent = upload.stop.signal.aborted ? "canceled" : problem.message;
    if (upload.stop.signal.aborted) fetch(`files/${upload.path}`, { method: "DELETE", headers: { "Upload-Key": keyOf(upload.file) } });
  }
  const button = upload.line.querySelector("button");
  button.textContent = "Dismiss";
  button.onclick = () => { upload.line.remove(); $("uploads").hidden = !$("uploads").children.length; };
}

const keyOf = (file) => `${file.size}-${file.lastModified}`;

async function sendParts(upload) {
  const { file, path } = upload;
  let condition = { "If-None-Match": "*" };
  let offset = null;
  let tries = 0;
  for (;;) {
    try {
      offset ??= await countReceived(path, file);
      const end = Math.min(offset + PART_BYTES, file.size);
      const part = offset < end ? `${offset}-${end - 1}` : "*"; // all bytes are there: only rename the draft
      const range = file.size ? { "Content-Range": `bytes ${part}/${file.size}`, "Upload-Key": keyOf(file) } : {};
      await sendPart(upload, offset, file.slice(offset, end), { ...range, ...condition });
      offset = end;
      tries = 0;
      if (offset >= file.size) return;
    } catch (problem) {
      if (upload.stop.signal.aborted) throw problem;
      if (problem.status === 412) {
        if (!(await ask(`There is a ${file.name} already. Replace it?`, { yes: "Replace" }))) throw new Error("kept the one that is there");
        condition = {};
      } else if (problem.status && problem.status < 500 && problem.status !== 409 && problem.status !== 408) throw problem;
      else {
        tries += 1;
        if (tries > MAX_TRIES || problem.status === 507) throw problem;
        upload.status.textContent = "continues in a moment";
        await new Promise((done) => { setTimeout(done, Math.min(500 * 2 ** tries, 15000)); });
      }
      offset = null; // ask how much has arrived
    }
  }
}

async function countReceived(path, file) {
  if (!file.size) return 0;
  const answer = await request(path, { method: "HEAD", headers: { "Upload-Key": keyOf(file) } });
  return Number(answer.headers.get("upload-offset"));
}

function sendPart(upload, offset, data, headers) {
  return new Promise((done, failed) => {
    const xhr = new XMLHttpRequest(); // fetch reports no progress
    const stop = () => { xhr.abort(); failed(new Error("canceled")); };
    xhr.open("PUT", `files/${upload.path}`);
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = (event) => {
      upload.bar.value = offset + event.loaded;
      upload.status.textContent = `${formatBytes(offset + event.loaded)} of ${formatBytes(upload.file.size)}`;
    };
    xhr.onload = () => {
      if (xhr.status < 300) return done();
      let status;
      try { status = JSON.parse(xhr.responseText).title; } catch { status = `${xhr.status} ${xhr.statusText}`; }
      return failed(new RequestError(xhr.status, status));
    };
    xhr.onerror = () => failed(new Error("the connection broke"));
    xhr.onloadend = () => upload.stop.signal.removeEventListener("abort", stop);
    upload.stop.signal.addEventListener("abort", stop);
    if (upload.stop.signal.aborted) stop(); else xhr.send(data);
  });
}
