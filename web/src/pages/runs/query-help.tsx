import { Dialog } from "@/components/overlays/dialog";

const EXAMPLES: [string, string][] = [
  ["train adam", "both words are in the name, command, Git commit, tags or notes"],
  ['name:"first try"', "the name contains this"],
  ["state:failed", "also pending, running, done, succeeded, broken, canceled"],
  ["tag:best", "has this tag"],
  ["experiment:Default", "a pipeline run of this experiment"],
  ["kind:repetition", "also reference, modification"],
  ["agent:ann", "this user started it"],
  ["made:elsewhere", "it was recorded on another machine; also made:here"],
  ["metrics.accuracy > 0.9", "also =, !=, <, <=, >="],
  ["params.optimizer = adam", "a parameter has this value"],
  ['params."learning rate" < 0.1', "a name with spaces, in quotes"],
  ["seconds > 60", "it took longer than a minute"],
];

export function QueryHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog
      open
      onClose={onClose}
      title="How to filter"
      description="Separate conditions by spaces: all of them must hold."
    >
      <dl className="grid grid-cols-1 gap-x-6 gap-y-2 sm:grid-cols-[auto_1fr]">
        {EXAMPLES.map(([query, what]) => (
          <div key={query} className="sm:contents">
            <dt>
              <code className="rounded border border-line bg-sunken px-1.5 py-0.5 font-mono text-sm">
                {query}
              </code>
            </dt>
            <dd className="text-quiet">{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
