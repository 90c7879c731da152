import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Field, Input, Select } from "@/components/fields/field";
import { Section } from "@/components/page";
import type { BackendInfo } from "../api/documents";
import { snapshotsQuery, volumesQuery } from "../api/queries";
import { NAME_PROBLEM, suggestName } from "../common/names";
import { currentNamespace } from "../common/namespace";
import { CreatePage, NameField, useCreation, useOpenedWith } from "../form/create-page";
import { FormFrame } from "../form/form-frame";
import { StorageClassOptions } from "../form/storage-class-options";
import { WithBackend } from "../list/list-page";
import { isQuantity } from "../notebooks/form/form-problems";
import { ACCESS_MODES, toGibibytes } from "../notebooks/form/volume-choice";
import { noSnapshots } from "../notebooks/form/volumes-section";

const TITLE = "New volume";
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const LOCAL_SIZE = "1Gi";
const route = getRouteApi("/volumes/new");

export function NewVolumePage() {
  return (
    <WithBackend title={TITLE} feature="volumes">
      {(backend) => <NewVolume backend={backend} />}
    </WithBackend>
  );
}

function NewVolume({ backend }: { backend: BackendInfo }) {
  const { namespace: chosen } = route.useSearch();
  const navigate = useNavigate();
  const namespace = currentNamespace(backend, chosen);
  const existing = useQuery(volumesQuery(namespace));
  return (
    <CreatePage
      title={TITLE}
      backend={backend}
      namespace={namespace}
      onNamespace={(next) =>
        navigate({ to: "/volumes/new", search: { namespace: next }, replace: true })
      }
      existing={existing}
    >
      {(taken) => <Form key={namespace} backend={backend} namespace={namespace} taken={taken} />}
    </CreatePage>
  );
}

interface Values {
  name: string;
  size: string;
  mode: string;
  class: string;
  /** Empty: a volume without content. */
  snapshot: string | null;
}

function Form({
  backend,
  namespace,
  taken,
}: {
  backend: BackendInfo;
  namespace: string;
  taken: ReadonlySet<string>;
}) {
  const local = backend.kind === "local";
  const { submit, leave } = useCreation("volumes", backend, namespace);
  const [values, setValues] = useState<Values>(() => ({
    name: suggestName("volume", taken),
    size: "5",
    mode: "ReadWriteOnce",
    class: "",
    snapshot: null,
  }));
  const names = useOpenedWith(taken);
  const [submitted, setSubmitted] = useState(false);
  const set = (change: Partial<Values>) => setValues((before) => ({ ...before, ...change }));
  const found = findProblems(values, names);
  const problems = submitted ? found : {};
  return (
    <FormFrame
      action="Create"
      busyAction="Creating…"
      onCancel={leave}
      hasProblems={() => {
        setSubmitted(true);
        return Object.keys(found).length > 0;
      }}
      onSubmit={() => submit(volumeBody(values, local))}
    >
      <Section>
        <div className="flex flex-col gap-4">
          <NameField name={values.name} error={problems.name} onChange={(name) => set({ name })} />
          {local ? (
            <p className="text-quiet">
              The volume is a directory of this project, so it may grow as long as the disk has
              space. This machine has no snapshots.
            </p>
          ) : (
            <ClusterFields
              values={values}
              set={set}
              problems={problems}
              namespace={namespace}
              snapshots={backend.features.snapshots}
            />
          )}
        </div>
      </Section>
    </FormFrame>
  );
}

function ClusterFields({
  values,
  set,
  problems,
  namespace,
  snapshots,
}: {
  values: Values;
  set: (change: Partial<Values>) => void;
  problems: Record<string, string>;
  namespace: string;
  snapshots: boolean;
}) {
  const found = useQuery({ ...snapshotsQuery(namespace), enabled: snapshots }).data ?? [];
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <Field label="Content" hint={snapshots ? undefined : `Empty, as ${noSnapshots(false)}.`}>
        <Select
          value={values.snapshot === null ? "empty" : "snapshot"}
          onChange={(event) => set({ snapshot: event.target.value === "empty" ? null : "" })}
        >
          <option value="empty">Empty</option>
          <option value="snapshot" disabled={!snapshots}>
            From a snapshot
          </option>
        </Select>
      </Field>
      {values.snapshot !== null && (
        <Field label="Snapshot" error={problems.snapshot}>
          <Select
            value={values.snapshot}
            onChange={(event) => set({ snapshot: event.target.value })}
          >
            <option value="">Choose a snapshot</option>
            {found.map(({ name, volume, size, ready }) => (
              <option key={name} value={name} disabled={!ready}>
                {[name, volume && `of ${volume}`, size].filter(Boolean).join(", ")}
              </option>
            ))}
          </Select>
        </Field>
      )}
      <Field label="Size in GiB" error={problems.size}>
        <Input
          inputMode="decimal"
          value={values.size}
          onChange={(event) => set({ size: event.target.value })}
        />
      </Field>
      <Field label="Storage class">
        <Select value={values.class} onChange={(event) => set({ class: event.target.value })}>
          <StorageClassOptions />
        </Select>
      </Field>
      <Field label="Access">
        <Select value={values.mode} onChange={(event) => set({ mode: event.target.value })}>
          {Object.entries(ACCESS_MODES).map(([mode, label]) => (
            <option key={mode} value={mode}>
              {label}
            </option>
          ))}
        </Select>
      </Field>
    </div>
  );
}

function findProblems(values: Values, taken: ReadonlySet<string>): Record<string, string> {
  const found: Record<string, string> = {};
  const name = values.name.trim();
  if (!NAME.test(name)) found.name = NAME_PROBLEM;
  else if (taken.has(name)) found.name = "There is a volume with this name. Choose another one.";
  if (!isQuantity(values.size)) found.size = "Enter a size above 0.";
  if (values.snapshot === "") found.snapshot = "Choose a snapshot.";
  return found;
}

function volumeBody(values: Values, local: boolean): object {
  const name = values.name.trim();
  if (local) return { name, mode: "ReadWriteMany", class: null, size: LOCAL_SIZE, type: "empty" };
  return {
    name,
    mode: values.mode,
    class: values.class || null,
    size: toGibibytes(values.size),
    type: values.snapshot ? "snapshot" : "empty",
    ...(values.snapshot ? { snapshot: values.snapshot } : {}),
  };
}
