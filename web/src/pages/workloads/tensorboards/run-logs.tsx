import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { api, unwrap } from "@/api/client";
import { Field, Input, Select } from "@/components/fields/field";
import { useSearch } from "@/components/search-hit";
import type { BoardForm } from "./board-form";

const RECENT = 100;
const FOUND = 20;
const COMMAND_LENGTH = 60;

interface Props {
  form: BoardForm;
  change: (part: Partial<BoardForm>) => void;
  problem: string | undefined;
}

/** Chooses the run whose logs are shown. */
export function RunLogs({ local, ...props }: Props & { local: boolean }) {
  return local ? <RecordedLogs {...props} /> : <ObservedLogs {...props} />;
}

function useRecent() {
  return useQuery({
    queryKey: ["activities", "recent", RECENT],
    queryFn: async () =>
      (await unwrap(api.GET("/api/v1/activities", { params: { query: { limit: RECENT } } })))
        .activities,
  });
}

type Recent = NonNullable<ReturnType<typeof useRecent>["data"]>[number];

function describe({ name, command }: Pick<Recent, "name" | "command">): string {
  return name ?? command.join(" ").slice(0, COMMAND_LENGTH);
}

function RecordedLogs({ form, change, problem }: Props) {
  const { data: recent = [] } = useRecent();
  const listed = recent.some(({ id }) => id === form.run);
  return (
    <Field
      label="Run"
      hint="It shows the TensorBoard logs that the run wrote, as they are stored with its record."
      error={problem}
    >
      <Select value={form.run} onChange={(event) => change({ run: event.target.value })}>
        <option value="">Choose a run</option>
        {form.run && !listed && <option>{form.run}</option>}
        {recent.map((one) => (
          <option key={one.id} value={one.id}>
            {[one.id, describe(one)].filter(Boolean).join(" – ")}
          </option>
        ))}
      </Select>
    </Field>
  );
}

/**
 * On a cluster, logs are shown where they were written. What agents observed is in no list of runs,
 * so it is searched for by what the user types.
 */
function ObservedLogs({ form, change, problem }: Props) {
  const list = useId();
  const { data: recent = [] } = useRecent();
  const { hits } = useSearch(form.run, FOUND);
  const observed = hits.filter(({ kind }) => kind === "pod");
  return (
    <>
      <Field
        label="Run"
        hint="Type a name, or an id such as e12. It shows the TensorBoard logs that the run wrote to a volume of this namespace or to a bucket. The page of a run that the server performed itself draws its curves."
        error={problem}
      >
        <Input
          value={form.run}
          list={list}
          spellCheck={false}
          placeholder="team/train"
          onChange={(event) => change({ run: event.target.value })}
        />
      </Field>
      <datalist id={list}>
        {observed.map(({ id, label }) => (
          <option key={id} value={id}>
            {label}
          </option>
        ))}
        {recent.map((one) => (
          <option key={one.id} value={one.id}>
            {describe(one)}
          </option>
        ))}
      </datalist>
    </>
  );
}
