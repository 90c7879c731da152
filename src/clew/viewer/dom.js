// Parts of the page: elements, the line for problems, and the dialog that asks.

export const $ = (id) => document.getElementById(id);

export const element = (name, properties = {}, ...inside) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...inside);
  return made;
};

export function formatBytes(size) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let step = 0;
  while (size >= 1000 && step < units.length - 1) { size /= 1000; step += 1; }
  return `${step && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[step]}`;
}

export function showProblem(problem) {
  $("problem").textContent = problem ? problem.message ?? String(problem) : "";
  $("problem").hidden = !problem;
}

export async function attempt(action) {
  try { showProblem(); return await action(); } catch (problem) { showProblem(problem); return undefined; }
}

export function ask(text, { value = null, yes = "OK" } = {}) {
  const dialog = $("ask");
  $("question").textContent = text;
  $("yes").textContent = yes;
  $("answer").hidden = value === null;
  $("answer").value = value ?? "";
  dialog.returnValue = "";
  dialog.showModal();
  (value === null ? $("yes") : $("answer")).focus();
  if (value) $("answer").setSelectionRange(0, value.includes(".") ? value.lastIndexOf(".") : value.length);
  return new Promise((done) => {
    dialog.onclose = () => done(dialog.returnValue !== "yes" ? null : value === null ? true : $("answer").value.trim() || null);
  });
}
$("answer").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  event.stopPropagation(); // it answers, and opens nothing
  $("ask").close("yes");
});
