import { Command } from "@/components/copy";

const STEPS: [string, string][] = [
  ["Record a command, in the directory of your project", "clew exec -- python3 train.py"],
  ["Ask where a result came from", "clew trace model.pkl"],
  ["Make it again, and compare", "clew repeat latest"],
  ["Run a pipeline of the kfp SDK", "clew pipeline run pipeline.py"],
];

/** What a newcomer does first, with the commands to type. */
export function FirstSteps() {
  return (
    <ol className="flex list-decimal flex-col gap-3 pl-5">
      {STEPS.map(([what, command]) => (
        <li key={command}>
          <p>{what}</p>
          <Command text={command} />
        </li>
      ))}
    </ol>
  );
}
