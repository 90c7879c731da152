import { NAME_PROBLEM, nameProblem } from "../../common/names";
import type { NotebookForm } from "./form-state";
import { resolveName, type VolumeChoice } from "./volume-choice";

const MAX_NAME = 52;
const QUANTITY = /^\d+(\.\d+)?(m|k|[KMGTP]i?|[eE]\d+)?$/;
const VARIABLE = /^[A-Za-z_][\w.-]{0,255}$/;
const CLAIM = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** What is wrong with a form: sentences by field, such as `name` or the key of a volume's row. */
export type Problems = Record<string, string>;

/** `taken`: the names of the notebooks that exist. `mounts`: whether paths can be chosen. */
export function findProblems(form: NotebookForm, taken: ReadonlySet<string>): Problems {
  const found: Problems = {};
  const wrong = nameProblem(form.name.trim(), MAX_NAME);
  if (wrong) found.name = wrong;
  else if (taken.has(form.name.trim())) {
    found.name = "There is a notebook with this name. Choose another one.";
  }
  if (form.customImage !== null && !form.customImage.trim()) {
    found.image = "Name an image, such as registry.example.org/team/jupyter:2.1.";
  }
  for (const field of ["cpu", "memory"] as const) {
    if (!isQuantity(form[field])) found[field] = "Enter a number above 0.";
    const limit = form[`${field}Limit`];
    if (limit.trim() && !isQuantity(limit)) found[`${field}Limit`] = "Enter a number above 0.";
    else if (limit.trim() && Number(limit) < Number(form[field])) {
      found[`${field}Limit`] = "The limit is less than what is reserved.";
    }
  }
  if (form.idleMinutes !== "" && form.idleMinutes !== "never" && !(Number(form.idleMinutes) > 0)) {
    found.idleMinutes = "Enter a number of minutes above 0.";
  }
  const names = new Set<string>();
  for (const { key, name } of form.environment) {
    if (!VARIABLE.test(name.trim())) {
      found[key] = "Use letters, digits and underscores, beginning with a letter.";
    } else if (names.has(name.trim())) found[key] = "This name is used twice.";
    names.add(name.trim());
  }
  const mounts = new Set<string>();
  for (const volume of [...(form.workspace ? [form.workspace] : []), ...form.data]) {
    const problem = volumeProblem(volume, form.name, mounts);
    if (problem) found[volume.key] = problem;
    mounts.add(volume.mount.trim().replace(/\/+$/, ""));
  }
  return found;
}

function volumeProblem(
  volume: VolumeChoice,
  notebook: string,
  mounts: ReadonlySet<string>,
): string | null {
  const name = resolveName(volume.name.trim(), notebook);
  if (volume.source === "existing" && !name) return "Choose a volume.";
  if (volume.source === "snapshot" && !volume.snapshot) return "Choose a snapshot.";
  if (volume.source === "new" || volume.source === "snapshot") {
    if (!CLAIM.test(name)) return `Volume: ${NAME_PROBLEM}`;
    if (!isQuantity(volume.size)) return "Enter a size above 0.";
  }
  const mount = volume.mount.trim().replace(/\/+$/, "");
  if (!mount.startsWith("/") || mount.split("/").includes("..")) {
    return "Enter an absolute path, such as /home/jovyan/data.";
  }
  return mounts.has(mount) ? "Two volumes have the same path." : null;
}

export function isQuantity(text: string): boolean {
  return QUANTITY.test(text.trim()) && Number.parseFloat(text) > 0;
}
