import type { Schemas } from "@/api/client";
import type { RepeatRequest } from "./use-repeats";

export type Relative = Schemas["Relative"];

type Request = Pick<RepeatRequest, "id" | "state" | "created" | "verdict" | "options">;

export interface ListedRepeat {
  /** The uid of the new execution. */
  id: string;
  state: string;
  at: string | null;
  about: string;
}

const HOW = {
  repetition: "recorded elsewhere",
  modification: "recorded elsewhere, with changes",
};

/** All repeats, newest first. Those that came with a record from elsewhere have no verdict. */
export function listRepeats(
  requests: readonly Request[],
  recorded: readonly Relative[],
): ListedRepeat[] {
  const asked = new Set(requests.map(({ id }) => id));
  const elsewhere = recorded.flatMap(({ uid, id, how, started }) =>
    (how === "repetition" || how === "modification") && !asked.has(uid)
      ? [{ id: uid, state: "done", at: started, about: `${id}, ${HOW[how]}` }]
      : [],
  );
  const own = requests.map((one) => ({
    id: one.id,
    state: one.verdict ?? one.state,
    at: one.created,
    about: [recorded.find(({ uid }) => uid === one.id)?.id, describeOptions(one)]
      .filter(Boolean)
      .join(", "),
  }));
  return [...own, ...elsewhere].sort(
    (a, b) => (Date.parse(b.at ?? "") || 0) - (Date.parse(a.at ?? "") || 0),
  );
}

function describeOptions({ options }: { options: RepeatRequest["options"] }): string {
  const parameters = Object.entries(options.parameters as Record<string, string>);
  return [
    ...parameters.map(([position, word]) => `word ${position}: ${word}`),
    options.incremental && "incremental",
    options.network && "with network",
    options.gpu && "with GPUs",
  ]
    .filter(Boolean)
    .join(", ");
}
