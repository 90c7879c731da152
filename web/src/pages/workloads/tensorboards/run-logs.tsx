import { useQuery } from "@tanstack/react-query";
import { fetchJson, type Schemas } from "@/api/client";
import { Field, Select } from "@/components/field";
import type { BoardForm } from "./board-form";

const RECENT = 100;
const COMMAND_LENGTH = 60;

/** Chooses the run whose logs are shown. */
export function RunLogs({
  form,
  change,
  problem,
}: {
  form: BoardForm;
  change: (part: Partial<BoardForm>) => void;
  problem: string | undefined;
}) {
  const { data: recent = [] } = useQuery({
    queryKey: ["activities", "recent", RECENT],
    queryFn: async () =>
      (await fetchJson<Schemas["ActivityPage"]>(`/api/v1/activities?limit=${RECENT}`)).activities,
  });
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
        {recent.map(({ id, name, command }) => (
          <option key={id} value={id}>
            {[id, name ?? command.join(" ").slice(0, COMMAND_LENGTH)].filter(Boolean).join(" – ")}
          </option>
        ))}
      </Select>
    </Field>
  );
}
