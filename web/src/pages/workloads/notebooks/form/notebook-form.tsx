import { useState } from "react";
import { Checkbox } from "@/components/fields/field";
import { Section } from "@/components/page";
import type { BackendInfo } from "../../api/documents";
import type { FormConfig } from "../../api/form-config";
import { NameField, useOpenedWith } from "../../form/create-page";
import { Disclosure } from "../../form/disclosure";
import { FormFrame } from "../../form/form-frame";
import { formatMinutes } from "../format-resources";
import { findProblems } from "./form-problems";
import { type FormBody, formBody, type NotebookForm as Values } from "./form-state";
import { ImageFields, PullPolicyField } from "./image-section";
import {
  ConfigurationFields,
  EnvironmentFields,
  IdleField,
  PlacementFields,
} from "./more-sections";
import { LimitFields, ResourceFields } from "./resources-section";
import { FIXED, isReadOnly, type SectionProps } from "./sections";
import { resolveName, type VolumeChoice } from "./volume-choice";
import { VolumeFields } from "./volumes-section";

/** The form of a notebook, for a new one and for one that exists. */
export function NotebookForm({
  initial,
  config,
  backend,
  namespace,
  taken,
  editing = false,
  onSubmit,
  onCancel,
}: {
  initial: Values;
  config: FormConfig;
  backend: BackendInfo;
  namespace: string;
  /** The names of the notebooks that exist. */
  taken: ReadonlySet<string>;
  editing?: boolean;
  onSubmit: (body: FormBody) => Promise<unknown>;
  onCancel: () => void;
}) {
  const [form, setForm] = useState(initial);
  const names = useOpenedWith(taken);
  const [submitted, setSubmitted] = useState(false);
  const problems = findProblems(form, names);
  const props: SectionProps = {
    form,
    change: (part) => setForm((before) => ({ ...before, ...part })),
    config,
    backend,
    namespace,
    problems: submitted ? problems : {},
    editing,
  };
  return (
    <FormFrame
      action={editing ? "Save" : "Create"}
      busyAction={editing ? "Saving…" : "Creating…"}
      onCancel={onCancel}
      onSubmit={() => onSubmit(formBody(form, config))}
      hasProblems={() => {
        setSubmitted(true);
        return Object.keys(problems).length > 0;
      }}
    >
      <Section>
        <div className="flex flex-col gap-4">
          {!editing && (
            <NameField
              name={form.name}
              error={props.problems.name}
              onChange={(name) => props.change({ name })}
            />
          )}
          <ImageFields {...props} />
          <ResourceFields {...props} />
        </div>
      </Section>
      <Disclosure title="Volumes" summary={describeVolumes(form)}>
        <VolumeFields {...props} />
      </Disclosure>
      <Disclosure title="Configurations" summary={form.configurations.join(", ") || "None"}>
        <ConfigurationFields {...props} />
      </Disclosure>
      <Disclosure title="Environment variables" summary={describeNames(form)}>
        <EnvironmentFields {...props} />
      </Disclosure>
      {backend.kind !== "local" && (
        <Disclosure title="Placement" summary={describePlacement(form)}>
          <PlacementFields {...props} />
        </Disclosure>
      )}
      <Disclosure title="Idle time" summary={describeIdleTime(form, backend)}>
        <IdleField {...props} />
      </Disclosure>
      {backend.kind !== "local" && (
        <Disclosure title="More" summary={describeMore(form)}>
          <LimitFields {...props} />
          <PullPolicyField {...props} />
          <Checkbox
            label={`Shared memory for programs that share data, such as data loaders${
              isReadOnly(config, "shm") ? `. ${FIXED}` : ""
            }`}
            checked={form.sharedMemory}
            disabled={isReadOnly(config, "shm")}
            onChange={(event) => props.change({ sharedMemory: event.target.checked })}
          />
        </Disclosure>
      )}
    </FormFrame>
  );
}

function describeVolumes(form: Values): string {
  const describe = (volume: VolumeChoice) => {
    const name = resolveName(volume.name, form.name) || Object.keys(volume.other ?? {})[0] || "?";
    return volume.source === "new" || volume.source === "snapshot" ? `${name} (new)` : name;
  };
  const all = [...(form.workspace ? [form.workspace] : []), ...form.data].map(describe);
  return all.join(", ") || "None: what you save is lost with the notebook";
}

function describeNames(form: Values): string {
  return form.environment.map(({ name }) => name).join(", ") || "None";
}

function describePlacement(form: Values): string {
  return [form.affinity, form.tolerations].filter(Boolean).join(", ") || "Any node";
}

function describeIdleTime(form: Values, backend: BackendInfo): string {
  const { enabled, idle_minutes: usual } = backend.features.culling;
  if (!enabled || form.idleMinutes === "never") return "Never stopped";
  const minutes = form.idleMinutes === "" ? usual : Number(form.idleMinutes);
  return minutes === null ? "Never stopped" : `Stopped after ${formatMinutes(minutes)}`;
}

function describeMore(form: Values): string {
  return form.sharedMemory ? "Limits, image, shared memory" : "Limits, image";
}
