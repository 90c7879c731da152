import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Field, Input, Select } from "@/components/field";
import { Page, Section } from "@/components/page";
import { create } from "../api/actions";
import type { BackendInfo } from "../api/documents";
import { snapshotsQuery, volumesQuery } from "../api/queries";
import { FormFrame } from "../common/form-frame";
import { WithBackend } from "../common/list-page";
import { NAME_PROBLEM, suggestName } from "../common/names";
import { currentNamespace, NamespaceSelect } from "../common/namespace";
import { useRequestKey } from "../common/request-key";
import { StorageClassOptions } from "../common/storage-class-options";
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
  const volumes = useQuery(volumesQuery(namespace));
  return (
    <Page
      title={TITLE}
      actions={
        <NamespaceSelect
          backend={backend}
          chosen={namespace}
          all={false}
          onChoose={(next) =>
            navigate({ to: "/volumes/new", search: { namespace: next }, replace: true })
          }
        />
      }
    >
      {volumes.error ? (
        <ErrorCard error={volumes.error} />
      ) : volumes.data ? (
        <Form
          key={namespace}
          backend={backend}
          namespace={namespace}
          taken={new Set(volumes.data.map(({ name }) => name))}
        />
      ) : (
        <Skeleton />
      )}
    </Page>
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
  const navigate = useNavigate();
  const client = useQueryClient();
  const key = useRequestKey();
  const [values, setValues] = useState<Values>(() => ({
    name: suggestName("volume", taken),
    size: "5",
    mode: "ReadWriteOnce",
    class: "",
    snapshot: null,
  }));
  // As it was when the form was opened: a request whose response was lost may have taken the name.
  const [names] = useState(taken);
  const [submitted, setSubmitted] = useState(false);
  const set = (change: Partial<Values>) => setValues((before) => ({ ...before, ...change }));
  const found = findProblems(values, names);
  const problems = submitted ? found : {};
  const leave = () => navigate({ to: "/volumes", search: { namespace } });
  return (
    <FormFrame
      action="Create"
      busyAction="Creating…"
      onCancel={leave}
      hasProblems={() => {
        setSubmitted(true);
        return Object.keys(found).length > 0;
      }}
      onSubmit={async () => {
        await create("volumes", namespace, volumeBody(values, local), key);
        await client.invalidateQueries({ queryKey: ["workloads"] });
        const usual = namespace === backend.namespace ? undefined : namespace;
        await navigate({ to: "/volumes", search: { namespace: usual } });
      }}
    >
      <Section>
        <div className="flex flex-col gap-4">
          <Field label="Name" error={problems.name}>
            <Input
              value={values.name}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => set({ name: event.target.value })}
            />
          </Field>
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
