/** The words of a command as one would type them in a shell. */
export function quoteCommand(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`))
    .join(" ");
}

const INTERPRETER = /^(.*\/)?(python[\d.]*|Rscript|node|bash|sh)$/;

/** The command without the interpreter of a script, which is the same in most rows. */
export function shortCommand(words: readonly string[]): string {
  const [first, second] = words;
  const isScript = second && !second.startsWith("-") && INTERPRETER.test(first ?? "");
  return quoteCommand(isScript ? words.slice(1) : words);
}
