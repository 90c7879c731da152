import { useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { Button, IconButton } from "@/components/button";
import { Checkbox, Field, Input, Select } from "@/components/fields/field";
import { configurationsQuery } from "../../api/queries";
import { formatMinutes } from "../format-resources";
import { newVariable } from "./form-state";
import { FIXED, isReadOnly, type SectionProps } from "./sections";

/** Settings that an administrator prepared, such as access to a bucket. */
export function ConfigurationFields({ form, change, config, namespace }: SectionProps) {
  const found = useQuery(configurationsQuery(namespace)).data ?? [];
  const fixed = isReadOnly(config, "configurations");
  const unknown = form.configurations.filter((label) => found.every((one) => one.label !== label));
  const toggle = (label: string, on: boolean) =>
    change({
      configurations: on
        ? [...form.configurations, label]
        : form.configurations.filter((one) => one !== label),
    });
  if (found.length + unknown.length === 0) {
    return <p className="text-quiet">There are no configurations in this namespace.</p>;
  }
  return (
    <div className="flex flex-col gap-2">
      {fixed && <p className="text-quiet">{FIXED}</p>}
      {[...found, ...unknown.map((label) => ({ label, desc: label }))].map(({ label, desc }) => (
        <Checkbox
          key={label}
          label={desc}
          disabled={fixed}
          checked={form.configurations.includes(label)}
          onChange={(event) => toggle(label, event.target.checked)}
        />
      ))}
    </div>
  );
}

export function EnvironmentFields({ form, change, config, problems }: SectionProps) {
  const fixed = isReadOnly(config, "environment");
  const replace = (key: string, part: { name?: string; value?: string }) =>
    change({
      environment: form.environment.map((one) => (one.key === key ? { ...one, ...part } : one)),
    });
  return (
    <>
      {form.environment.map(({ key, name, value }, index) => (
        <div key={key} className="flex items-start gap-2">
          <div className="grid min-w-0 flex-1 gap-2 sm:grid-cols-2">
            <Field label={`Variable ${index + 1}`} error={problems[key]}>
              <Input
                value={name}
                disabled={fixed}
                spellCheck={false}
                onChange={(event) => replace(key, { name: event.target.value })}
              />
            </Field>
            <Field label={`Value ${index + 1}`}>
              <Input
                value={value}
                disabled={fixed}
                spellCheck={false}
                onChange={(event) => replace(key, { value: event.target.value })}
              />
            </Field>
          </div>
          {!fixed && (
            <span className="pt-6">
              <IconButton
                label={`Remove variable ${index + 1}`}
                onClick={() =>
                  change({ environment: form.environment.filter((one) => one.key !== key) })
                }
              >
                <Trash2 size={15} aria-hidden />
              </IconButton>
            </span>
          )}
        </div>
      ))}
      {fixed ? (
        <p className="text-quiet">{FIXED}</p>
      ) : (
        <div>
          <Button onClick={() => change({ environment: [...form.environment, newVariable()] })}>
            <Plus size={15} aria-hidden /> Add a variable
          </Button>
        </div>
      )}
    </>
  );
}

/** Where it runs: groups that an administrator prepared. */
export function PlacementFields({ form, change, config }: SectionProps) {
  const affinities = config.affinityConfig?.options ?? [];
  const tolerations = config.tolerationGroup?.options ?? [];
  if (affinities.length + tolerations.length === 0) {
    return (
      <p className="text-quiet">
        The administrator has prepared no groups of nodes; the cluster chooses a node.
      </p>
    );
  }
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <Field
        label="Affinity"
        hint={isReadOnly(config, "affinityConfig") ? FIXED : "Nodes that are preferred."}
      >
        <Select
          value={form.affinity}
          disabled={isReadOnly(config, "affinityConfig")}
          onChange={(event) => change({ affinity: event.target.value })}
        >
          <option value="">None</option>
          {affinities.map(({ configKey, displayName }) => (
            <option key={configKey} value={configKey}>
              {displayName ?? configKey}
            </option>
          ))}
        </Select>
      </Field>
      <Field
        label="Tolerations"
        hint={isReadOnly(config, "tolerationGroup") ? FIXED : "Nodes that only some may use."}
      >
        <Select
          value={form.tolerations}
          disabled={isReadOnly(config, "tolerationGroup")}
          onChange={(event) => change({ tolerations: event.target.value })}
        >
          <option value="">None</option>
          {tolerations.map(({ groupKey, displayName }) => (
            <option key={groupKey} value={groupKey}>
              {displayName ?? groupKey}
            </option>
          ))}
        </Select>
      </Field>
    </div>
  );
}

/** When an unused notebook is stopped. */
export function IdleField({ form, change, backend, problems }: SectionProps) {
  const { enabled, idle_minutes: usual } = backend.features.culling;
  const kind = form.idleMinutes === "" || form.idleMinutes === "never" ? form.idleMinutes : "after";
  if (!enabled) {
    return <p className="text-quiet">Idle notebooks are not stopped here.</p>;
  }
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <Field label="Stop when idle" hint="Its volumes are kept.">
        <Select
          value={kind}
          onChange={(event) =>
            change({ idleMinutes: event.target.value === "after" ? "60" : event.target.value })
          }
        >
          <option value="">
            {usual === null ? "As usual: never" : `As usual: after ${formatMinutes(usual)}`}
          </option>
          <option value="after">After a time of its own</option>
          <option value="never">Never</option>
        </Select>
      </Field>
      {kind === "after" && (
        <Field label="Idle minutes" error={problems.idleMinutes}>
          <Input
            inputMode="numeric"
            value={form.idleMinutes}
            onChange={(event) => change({ idleMinutes: event.target.value || "0" })}
          />
        </Field>
      )}
    </div>
  );
}
