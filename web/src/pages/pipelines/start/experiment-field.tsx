import { useQuery } from "@tanstack/react-query";
import { Field, Select } from "@/components/fields/field";
import { experimentsQuery } from "../api";

/** Chooses one of the experiments that accept runs. Empty: the default one. */
export function ExperimentField({
  value,
  onChange,
}: {
  value: string;
  onChange: (id: string) => void;
}) {
  const { data = [] } = useQuery(experimentsQuery);
  const open = data.filter((one) => !one.archived && one.name !== "Default");
  const isDefault = !open.some((one) => one.id === value);
  return (
    <Field label="Experiment" hint="A group of runs.">
      <Select value={isDefault ? "" : value} onChange={(event) => onChange(event.target.value)}>
        <option value="">Default</option>
        {open.map((one) => (
          <option key={one.id} value={one.id}>
            {one.name}
          </option>
        ))}
      </Select>
    </Field>
  );
}
