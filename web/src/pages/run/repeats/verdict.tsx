// biome-ignore-all lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
// biome-ignore-all lint/suspicious/noArrayIndexKey: these parts have no other name, and never move
import { Link } from "@tanstack/react-router";
import type { Schemas } from "@/api/client";
import { StateBadge } from "@/components/state-badge";
import { parseLine } from "../logs/ansi";

/** The result of a repeat; `changes` is of commits only. */
export type Result = Omit<Schemas["Repeated"], "changes">;
type Divergence = Schemas["Divergence"];

const MEANINGS: Record<string, string> = {
  identical: "Every output has the same bytes.",
  equivalent: "The outputs differ only in what comparisons ignore, such as times within files.",
  different: "Some outputs differ.",
};
const CAUSES: Record<string, string> = {
  input: "an input file",
  argument: "an argument",
  variable: "an environment variable",
  library: "a library",
  cpu: "the CPU",
  clock: "the clock",
  random: "randomness",
  network: "the network",
  order: "the order of events",
  listing: "the order of a directory",
  gpu: "a GPU",
};

/** What came of a repeat: the verdict, what differs, and why. */
export function Verdict({ result }: { result: Result }) {
  const { verdict, differences, divergence, warnings, execution } = result;
  return (
    <div className="flex min-w-0 flex-col gap-4">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <StateBadge state={verdict} />
        <span>{MEANINGS[verdict]}</span>
        {execution.id && (
          <Link to="/runs/$id" params={{ id: execution.id }} className="text-accent underline">
            {execution.id}
          </Link>
        )}
        {execution.id && (
          <Link
            to="/compare"
            search={{ id: [result.of, execution.id] }}
            className="text-accent underline"
          >
            Compare side by side
          </Link>
        )}
      </p>
      {divergence && <Cause divergence={divergence} />}
      {differences.length > 0 && <Differences differences={differences} />}
      {warnings.length > 0 && (
        <section>
          <h3 className="font-semibold">What could not be as it was</h3>
          <ul className="list-disc pl-5">
            {warnings.map((warning) => (
              <li key={warning} className="break-words">
                {warning}
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function Cause({ divergence }: { divergence: Divergence }) {
  return (
    <section aria-label="Cause" className="rounded-lg border border-line bg-sunken p-3">
      <h3 className="font-semibold">Why it differs</h3>
      <p className="break-words">
        The first process that did something else is{" "}
        <code className="font-mono break-all">{divergence.command.join(" ")}</code>.
      </p>
      {divergence.causes.length === 0 && (
        <p className="text-quiet">No cause was found in what was recorded.</p>
      )}
      <ul className="mt-1 flex flex-col gap-1">
        {divergence.causes.map((cause) => (
          <li key={`${cause.cause} ${cause.detail}`} className="break-words">
            <strong>{CAUSES[cause.cause] ?? cause.cause}</strong>
            {cause.detail && `: ${cause.detail}`}{" "}
            <span className="text-quiet">
              {cause.confidence === "confirmed"
                ? "(confirmed: with it fixed, the difference disappears)"
                : "(possible; not confirmed by an experiment)"}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const SHOWN = 50;

function Differences({ differences }: { differences: readonly Schemas["Difference"][] }) {
  return (
    <section>
      <h3 className="mb-1 font-semibold">
        {differences.length} {differences.length === 1 ? "difference" : "differences"}
      </h3>
      <ul className="flex flex-col gap-2">
        {differences.slice(0, SHOWN).map((difference) => (
          <li key={`${difference.path} ${difference.kind}`} className="min-w-0">
            <p className="flex flex-wrap gap-x-2">
              <span className="text-quiet">{difference.kind}</span>
              <code className="font-mono break-all">{difference.path}</code>
              {difference.rule && <span className="text-quiet">({difference.rule})</span>}
            </p>
            {difference.lines && difference.lines.length > 0 && (
              <pre
                tabIndex={0}
                className="mt-1 max-h-60 overflow-auto rounded border border-line bg-sunken p-2 font-mono text-[0.86rem]"
              >
                {difference.lines.map((line, at) => (
                  <span
                    key={at}
                    className={`block ${line.startsWith("+") ? "text-success" : line.startsWith("-") ? "text-failure" : ""}`}
                  >
                    {parseLine(line)
                      .map(({ text }) => text)
                      .join("")}
                  </span>
                ))}
              </pre>
            )}
          </li>
        ))}
      </ul>
      {differences.length > SHOWN && (
        <p className="text-quiet">
          and {differences.length - SHOWN} more; the comparison shows all of them
        </p>
      )}
    </section>
  );
}
