const VOLUME = "pvc://";
/** Where the server copies the logs of runs to. */
const COPIES = ".clew/workloads/tensorboard/";
const BUCKET = /^(s3|gs|hdfs|https?|az|abfss?):\/\/[^/\s]+/;

/** Where logs are, as the form has it. */
export interface LogPlace {
  volume: string;
  path: string;
}

/** The volume and the path of logs; null: they are in a bucket. */
export function readLogPlace(logspath: string): LogPlace | null {
  if (!logspath.startsWith(VOLUME)) return null;
  const [volume = "", ...path] = logspath.slice(VOLUME.length).split("/");
  return { volume, path: path.join("/") };
}

export function writeLogPlace({ volume, path }: LogPlace): string {
  const inner = path.trim().replace(/^\/+|\/+$/g, "");
  return inner ? `${VOLUME}${volume}/${inner}` : `${VOLUME}${volume}`;
}

/** `training/logs in the volume project`, or the address of a bucket. */
export function describeLogs(logspath: string): string {
  const place = readLogPlace(logspath);
  if (!place) return logspath;
  if (place.path.startsWith(COPIES)) return "logs of a run, copied from its record";
  return place.path ? `volume ${place.volume}: ${place.path}` : `volume ${place.volume}`;
}

/** What is wrong with the address of a bucket; null: nothing. */
export function bucketProblem(address: string): string | null {
  return BUCKET.test(address.trim())
    ? null
    : "Enter an address, such as s3://bucket/path or gs://bucket/path.";
}

export function pathProblem(path: string): string | null {
  return path.split("/").includes("..") ? "The path must stay in the volume." : null;
}
