const VALUE = /inputs\.(?:parameter_values|parameters)\['([^']*)'\](?:\.string_value)?/g;
const CHANNEL = /^pipelinechannel--/;

/** `pipelinechannel--flip-Output` is shown as `flip.Output`, and an input of the pipeline by name. */
export function channelName(name: string, tasks: string[] = []): string {
  const bare = name.replace(CHANNEL, "");
  if (bare === name) return name;
  const task = tasks
    .filter((one) => bare.startsWith(`${one}-`))
    .sort((a, b) => b.length - a.length)[0];
  return task ? `${task}.${bare.slice(task.length + 1)}` : bare;
}

/** The condition of a task as people write it: `flip.Output == 'heads'`. */
export function readableCondition(condition: string, tasks: string[] = []): string {
  return condition
    .replace(VALUE, (_, name: string) => channelName(name, tasks))
    .replace(/\b(?:int|double)\(([^()]*)\)/g, "$1")
    .replace(/\s*&&\s*/g, " and ")
    .replace(/\s*\|\|\s*/g, " or ")
    .replace(/!\(/g, "not (")
    .trim();
}
