import type { Box } from "../graph-model";

const SAFE = /^[\w@%+=:,./-]+$/;

/** A word as a shell reads it back. */
export function quote(word: string): string {
  return SAFE.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

interface Suggestion {
  command: string;
  does: string;
}

/**
 * What a user can type to get the same answers, and to get the thing itself. What a cluster made is
 * made again by its Pods, not by a command on this machine.
 */
export function listCommands(box: Box, asOf?: string): Suggestion[] {
  const id = quote(box.id);
  const { node } = box;
  if (!node) return [];
  const time = asOf ? ` --as-of ${asOf}` : "";
  const trace = [
    { command: `clew trace ${id}${time}`, does: "what produced it" },
    { command: `clew trace ${id} --down${time}`, does: "what was derived from it" },
  ];
  const content = node.version
    ? [
        { command: `clew cat ${id}`, does: "its content" },
        { command: `clew restore ${id} --to restored/`, does: "write it to a file" },
      ]
    : [];
  if (isOfCluster(box))
    return [
      ...trace,
      ...(node.stored ? content : []),
      ...(isLeftByPods(box) ? listReproductions(id, time) : []),
    ];
  if (node.version)
    return [
      ...trace,
      ...content,
      { command: `clew recreate ${id} --dry-run`, does: "what must run to make it again" },
    ];
  const execution = quote(node.execution ?? node.id);
  return [
    ...trace,
    { command: `clew show ${execution} --detail`, does: "what its execution did" },
    { command: `clew repeat ${execution}`, does: "run it again and compare" },
  ];
}

function listReproductions(id: string, time: string): Suggestion[] {
  return [
    {
      command: `clew reproduce ${id}${time} --dry-run`,
      does: "which Pods must run to make it again",
    },
    { command: `clew reproduce ${id}${time}`, does: "run them, and compare" },
  ];
}

const OF_CLUSTER = /^(pvc|s3|hdfs|emptydir|configmap|secret|service|image|pod|ip):\/\//;
const LEFT_BY_PODS = /^(pvc|s3|hdfs|emptydir):\/\//;

/** Whether it is of a cluster: no command of this machine made it, or can make it again. */
export function isOfCluster({ node }: Box): boolean {
  return Boolean(node && (node.namespace || OF_CLUSTER.test(node.locator ?? "")));
}

/** The folder of a bucket whose logs a TensorBoard can show; null if this is no such log. */
export function findLogFolder({ node }: Box): string | null {
  return /^(s3:\/\/.+)\/[^/]*tfevents[^/]*$/.exec(node?.locator ?? "")?.[1] ?? null;
}

/** Whether Pods can run again for it: it is one, or what Pods left on a volume or in a bucket. */
export function isLeftByPods({ node }: Box): boolean {
  return Boolean(node && (node.pod || LEFT_BY_PODS.test(node.locator ?? "")));
}
