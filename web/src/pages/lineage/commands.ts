import type { Box } from "./graph-model";

const SAFE = /^[\w@%+=:,./-]+$/;

/** A word as a shell reads it back. */
export function quote(word: string): string {
  return SAFE.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** What a user can type to get the same answers, and to get the thing itself. */
export function listCommands(box: Box): { command: string; does: string }[] {
  const id = quote(box.id);
  const { node } = box;
  if (!node) return [];
  const trace = [
    { command: `clew trace ${id}`, does: "what produced it" },
    { command: `clew trace ${id} --down`, does: "what was derived from it" },
  ];
  if (!node.version) {
    const execution = node.execution ?? node.id;
    return [
      ...trace,
      { command: `clew show ${quote(execution)} --detail`, does: "what its execution did" },
      { command: `clew repeat ${quote(execution)}`, does: "run it again and compare" },
    ];
  }
  return [
    ...trace,
    { command: `clew cat ${id}`, does: "its content" },
    { command: `clew restore ${id} --to restored/`, does: "write it to a file" },
    { command: `clew recreate ${id} --dry-run`, does: "what must run to make it again" },
  ];
}
