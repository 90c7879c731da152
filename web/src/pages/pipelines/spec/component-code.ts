import { listOf, part, textOf } from "./ir";

const HEADER =
  /^\s*import kfp\nfrom kfp import dsl\nfrom kfp\.dsl import \*\nfrom typing import \*\n/;
const INSTALL = /pip install ((?:'[^']*'|"[^"]*"|[^&;\n'"])*)/g;
const RUNTIME = /^(kfp(==.*)?|typing-extensions.*)$/;

export interface Container {
  image: string;
  /** The function of a Python component; empty for other containers. */
  code: string;
  function: string;
  packages: string[];
  /** Command and arguments of a container that is not a Python component. */
  command: string[];
  env: [string, string][];
  resources: [string, string][];
}

/** What a component runs. The SDK compiles a Python function to a shell script around its source. */
export function readContainer(executor: unknown): Container | null {
  const container = part(executor, "container");
  const image = textOf(container.image);
  if (!image) return null;
  const command = listOf(container.command).map(String);
  const args = listOf(container.args).map(String);
  const at = args.indexOf("--function_to_execute");
  const isFunction = at >= 0;
  return {
    image,
    code: isFunction ? (command.at(-1) ?? "").replace(HEADER, "").trim() : "",
    function: isFunction ? (args[at + 1] ?? "") : "",
    packages: isFunction ? readPackages(command.slice(0, -1).join("\n")) : [],
    command: isFunction ? [] : [...command, ...args],
    env: listOf(container.env).map((one) => [textOf(part(one).name), textOf(part(one).value)]),
    resources: readResources(part(container.resources)),
  };
}

/** The packages that are installed before the function runs, without those of the SDK itself. */
function readPackages(script: string): string[] {
  const packages: string[] = [];
  for (const [, words = ""] of script.matchAll(INSTALL)) {
    for (const [, quoted = "", plain = ""] of words.matchAll(/'([^']*)'|(\S+)/g)) {
      const word = quoted || plain;
      if (word && !word.startsWith("-") && !RUNTIME.test(word)) packages.push(word);
    }
  }
  return [...new Set(packages)];
}

function readResources(resources: Record<string, unknown>): [string, string][] {
  const found: [string, string][] = [];
  const add = (label: string, ...names: string[]) => {
    const value = names.map((name) => resources[name]).find((one) => one !== undefined);
    if (value !== undefined) found.push([label, String(value)]);
  };
  add("CPU, at least", "resourceCpuRequest", "cpuRequest");
  add("CPU, at most", "resourceCpuLimit", "cpuLimit");
  add("Memory, at least", "resourceMemoryRequest", "memoryRequest");
  add("Memory, at most", "resourceMemoryLimit", "memoryLimit");
  const accelerator = part(resources.accelerator);
  const count = textOf(accelerator.resourceCount) || String(accelerator.count ?? "");
  const type = textOf(accelerator.resourceType) || textOf(accelerator.type);
  if (type) found.push(["Accelerator", `${count || 1} × ${type}`]);
  return found;
}
