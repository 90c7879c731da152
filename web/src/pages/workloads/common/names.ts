const NAME = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
export const NAME_PROBLEM = "Use small letters, digits and dashes; begin with a letter.";

/** What is wrong with a name; null: nothing. */
export function nameProblem(name: string, longest: number): string | null {
  if (!name) return "Enter a name.";
  if (name.length > longest) return `The name may have at most ${longest} characters.`;
  return NAME.test(name) ? null : NAME_PROBLEM;
}

/** The first of `notebook-1`, `notebook-2`, … that is free. */
export function suggestName(prefix: string, taken: ReadonlySet<string>): string {
  let number = 1;
  while (taken.has(`${prefix}-${number}`)) number += 1;
  return `${prefix}-${number}`;
}

/** A text made into a name that is allowed: `Runs/E5 logs` becomes `runs-e5-logs`. */
export function toName(text: string, longest: number): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+/, "")
    .slice(0, longest)
    .replace(/-+$/, "");
}
