import { nameProblem } from "../common/names";
import { bucketProblem, pathProblem, readLogPlace, writeLogPlace } from "./log-place";

const MAX_NAME = 58;

export type LogSource = "run" | "volume" | "bucket";

export interface BoardForm {
  name: string;
  source: LogSource;
  /** The id of the run. */
  run: string;
  volume: string;
  path: string;
  address: string;
  configurations: string[];
}

/** A form, filled in as far as the link says that led to it. */
export function initialBoard(
  link: { run?: string; volume?: string; logspath?: string },
  name: string,
  local: boolean,
): BoardForm {
  const place = link.logspath ? readLogPlace(link.logspath) : null;
  const volume = place?.volume ?? link.volume ?? (local ? "project" : "");
  const source = link.run ? "run" : link.logspath && !place ? "bucket" : "volume";
  return {
    name,
    source,
    run: link.run ?? "",
    volume,
    path: place?.path ?? "",
    address: source === "bucket" ? (link.logspath ?? "") : "",
    configurations: [],
  };
}

/** What is wrong, by field. A TensorBoard of a run is named by the server. */
export function findProblems(form: BoardForm, taken: ReadonlySet<string>): Record<string, string> {
  if (form.source === "run") return form.run ? {} : { run: "Choose a run." };
  const found: Record<string, string> = {};
  const wrong = nameProblem(form.name.trim(), MAX_NAME);
  if (wrong) found.name = wrong;
  else if (taken.has(form.name.trim())) {
    found.name = "There is a TensorBoard with this name. Choose another one.";
  }
  if (form.source === "volume") {
    if (!form.volume) found.volume = "Choose a volume.";
    const problem = pathProblem(form.path);
    if (problem) found.path = problem;
  } else {
    const problem = bucketProblem(form.address);
    if (problem) found.address = problem;
  }
  return found;
}

export function boardBody(form: BoardForm): object {
  return {
    name: form.name.trim(),
    logspath:
      form.source === "bucket"
        ? form.address.trim()
        : writeLogPlace({ volume: form.volume, path: form.path }),
    configurations: form.configurations,
  };
}
