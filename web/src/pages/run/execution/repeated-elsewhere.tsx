import { Link } from "@tanstack/react-router";
import { ButtonLink } from "@/components/button";
import { Section } from "@/components/page";
import type { Execution } from "./use-execution";

const REPEATS = new Set(["repetition", "modification"]);

/** The executions that `clew repeat` recorded: the app has no verdict of them, but can compare. */
export function RepeatedElsewhere({ execution }: { execution: Execution }) {
  const repeats = execution.derived.executions.filter(({ how }) => REPEATS.has(how));
  if (!repeats.length) return null;
  return (
    <Section title="Repeated at the command line">
      <ul className="flex flex-col gap-2" aria-label="Repeated at the command line">
        {repeats.map(({ id, how }) => (
          <li key={id} className="flex flex-wrap items-center gap-3">
            <Link to="/runs/$id" params={{ id }} className="text-accent underline">
              {id}
            </Link>
            <span className="text-quiet">
              {how === "modification" ? "with changes" : "as it was"}
            </span>
            <ButtonLink to="/compare" search={{ id: [execution.id ?? execution.uid, id] }}>
              Compare
            </ButtonLink>
          </li>
        ))}
      </ul>
    </Section>
  );
}
