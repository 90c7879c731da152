import { Field, Input, Select } from "@/components/fields/field";
import { FIXED, isReadOnly, type SectionProps } from "./sections";

const GPU_COUNTS = ["none", "1", "2", "4", "8"];

/** CPU, memory and GPUs. */
export function ResourceFields({ form, change, config, backend, problems }: SectionProps) {
  const local = backend.kind === "local";
  const vendors = (config.gpus?.value?.vendors ?? []).filter(({ limitsKey }) =>
    backend.features.gpus.includes(limitsKey),
  );
  const gpusFixed = isReadOnly(config, "gpus");
  const counts = GPU_COUNTS.includes(form.gpus) ? GPU_COUNTS : [...GPU_COUNTS, form.gpus];
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-3">
        <Field
          label="CPU cores"
          hint={isReadOnly(config, "cpu") ? FIXED : undefined}
          error={problems.cpu}
        >
          <Input
            inputMode="decimal"
            value={form.cpu}
            disabled={isReadOnly(config, "cpu")}
            onChange={(event) => change({ cpu: event.target.value })}
          />
        </Field>
        <Field
          label="Memory in GiB"
          hint={isReadOnly(config, "memory") ? FIXED : undefined}
          error={problems.memory}
        >
          <Input
            inputMode="decimal"
            value={form.memory}
            disabled={isReadOnly(config, "memory")}
            onChange={(event) => change({ memory: event.target.value })}
          />
        </Field>
        {vendors.length > 0 && (
          <Field label="GPUs" hint={gpusFixed ? FIXED : undefined}>
            <Select
              value={form.gpus}
              disabled={gpusFixed}
              onChange={(event) =>
                change({
                  gpus: event.target.value,
                  gpuVendor: form.gpuVendor || (vendors[0]?.limitsKey ?? ""),
                })
              }
            >
              {counts.map((count) => (
                <option key={count} value={count}>
                  {count === "none" ? "None" : count}
                </option>
              ))}
            </Select>
          </Field>
        )}
      </div>
      {vendors.length > 0 && form.gpus !== "none" && (
        <Field label="GPU vendor" hint={gpusFixed ? FIXED : undefined}>
          <Select
            value={form.gpuVendor}
            disabled={gpusFixed}
            onChange={(event) => change({ gpuVendor: event.target.value })}
          >
            {vendors.map(({ limitsKey, uiName }) => (
              <option key={limitsKey} value={limitsKey}>
                {uiName}
              </option>
            ))}
          </Select>
        </Field>
      )}
      {local ? (
        <p className="text-quiet">
          On one machine these numbers are a note: a notebook may use all of its CPU, memory and
          GPUs.
        </p>
      ) : (
        vendors.length === 0 && (
          <p className="text-quiet">GPUs: this cluster has none that notebooks can use.</p>
        )
      )}
    </>
  );
}

/** The most that a notebook may use, if it is not what the administrator's factor makes of it. */
export function LimitFields({ form, change, config, problems }: SectionProps) {
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <Field
        label="Limit of CPU cores"
        hint={limitHint(config.cpu?.limitFactor, isReadOnly(config, "cpu"))}
        error={problems.cpuLimit}
      >
        <Input
          inputMode="decimal"
          value={form.cpuLimit}
          disabled={isReadOnly(config, "cpu")}
          onChange={(event) => change({ cpuLimit: event.target.value })}
        />
      </Field>
      <Field
        label="Limit of memory in GiB"
        hint={limitHint(config.memory?.limitFactor, isReadOnly(config, "memory"))}
        error={problems.memoryLimit}
      >
        <Input
          inputMode="decimal"
          value={form.memoryLimit}
          disabled={isReadOnly(config, "memory")}
          onChange={(event) => change({ memoryLimit: event.target.value })}
        />
      </Field>
    </div>
  );
}

function limitHint(factor: string | undefined, fixed: boolean): string {
  if (fixed) return FIXED;
  return factor && factor !== "none"
    ? `Empty: ${factor} times what is reserved.`
    : "Empty: no limit.";
}
