import { useQuery } from "@tanstack/react-query";
import { fetchJson } from "@/api/client";
import { Field, Select } from "@/components/field";
import { part } from "../api/queries";
import type { BoardForm } from "./board-form";
import { describeLogs } from "./log-place";

const RECENT = 100;

interface Activity {
  id: string;
  name: string | null;
  command: string[];
}

interface LogPlaces {
  places: string[];
}

/** Chooses a run, and which of its directories with logs to show. */
export function RunLogs({
  form,
  change,
  problem,
  namespace,
}: {
  form: BoardForm;
  change: (part: Partial<BoardForm>) => void;
  problem: string | undefined;
  namespace: string;
}) {
  const { data: recent = [] } = useQuery({
    queryKey: ["activities", "recent", RECENT],
    queryFn: async () =>
      (await fetchJson<{ activities: Activity[] }>(`/api/v1/activities?limit=${RECENT}`))
        .activities,
  });
  const places = useQuery({
    queryKey: ["executions", "log-places", namespace, form.run],
    queryFn: async () =>
      (
        await fetchJson<LogPlaces>(
          `/api/v1/namespaces/${part(namespace)}/log-places?target=${part(form.run)}`,
        )
      ).places,
    enabled: form.run !== "",
  });
  const listed = recent.some(({ id }) => id === form.run);
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <Field label="Run">
        <Select
          value={form.run}
          onChange={(event) => change({ run: event.target.value, place: "" })}
        >
          <option value="">Choose a run</option>
          {form.run && !listed && <option>{form.run}</option>}
          {recent.map(({ id, name, command }) => (
            <option key={id} value={id}>
              {[id, name ?? command.join(" ").slice(0, 60)].filter(Boolean).join(" – ")}
            </option>
          ))}
        </Select>
      </Field>
      <Field label="Logs" hint={hint(places)} error={problem}>
        <Select
          value={form.place}
          disabled={!places.data?.length}
          onChange={(event) => change({ place: event.target.value })}
        >
          <option value="">Choose a directory</option>
          {places.data?.map((place) => (
            <option key={place} value={place}>
              {describeLogs(place)}
            </option>
          ))}
        </Select>
      </Field>
    </div>
  );
}

function hint(places: { data?: string[]; error: unknown; isFetching: boolean }): string {
  if (places.isFetching) return "Looking for logs…";
  if (places.error) return "The logs of this run cannot be found now.";
  if (places.data?.length === 0) return "This run wrote no TensorBoard logs.";
  return "The directories in which the run wrote TensorBoard logs.";
}
