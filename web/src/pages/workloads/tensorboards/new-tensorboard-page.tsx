import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Checkbox, Field, Input, Select } from "@/components/fields/field";
import { Section } from "@/components/page";
import { openTensorboard } from "../api/actions";
import type { BackendInfo } from "../api/documents";
import { configurationsQuery, tensorboardsQuery, volumesQuery } from "../api/queries";
import { suggestName } from "../common/names";
import { currentNamespace } from "../common/namespace";
import { ProgramBanner } from "../common/program-banner";
import { CreatePage, NameField, useCreation, useOpenedWith } from "../form/create-page";
import { Disclosure } from "../form/disclosure";
import { FormFrame } from "../form/form-frame";
import { WithBackend } from "../list/list-page";
import {
  type BoardForm,
  boardBody,
  findProblems,
  initialBoard,
  type LogSource,
} from "./board-form";
import { RunLogs } from "./run-logs";

const TITLE = "New TensorBoard";
const route = getRouteApi("/tensorboards/new");

export function NewTensorboardPage() {
  return (
    <WithBackend title={TITLE} feature="tensorboards">
      {(backend) => <NewTensorboard backend={backend} />}
    </WithBackend>
  );
}

function NewTensorboard({ backend }: { backend: BackendInfo }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const namespace = currentNamespace(backend, search.namespace);
  const existing = useQuery(tensorboardsQuery(namespace));
  return (
    <CreatePage
      title={TITLE}
      backend={backend}
      namespace={namespace}
      onNamespace={(next) =>
        navigate({
          to: "/tensorboards/new",
          search: { ...search, namespace: next },
          replace: true,
        })
      }
      existing={existing}
      banner={<ProgramBanner name="tensorboard" backend={backend} />}
    >
      {(taken) => <Form key={namespace} backend={backend} namespace={namespace} taken={taken} />}
    </CreatePage>
  );
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
  const search = route.useSearch();
  const navigate = useNavigate();
  const client = useQueryClient();
  const { submit, leave } = useCreation("tensorboards", backend, namespace);
  const local = backend.kind === "local";
  const [form, setForm] = useState(() =>
    initialBoard(search, suggestName("tensorboard", taken), local),
  );
  const names = useOpenedWith(taken);
  const [submitted, setSubmitted] = useState(false);
  const change = (part: Partial<BoardForm>) => setForm((before) => ({ ...before, ...part }));
  const found = findProblems(form, names);
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
      onSubmit={async () => {
        if (form.source === "run") {
          const { name } = await openTensorboard(namespace, { target: form.run });
          await client.invalidateQueries({ queryKey: ["workloads"] });
          await navigate({ to: "/tensorboards/$namespace/$name", params: { namespace, name } });
          return;
        }
        await submit(boardBody(form));
      }}
    >
      <Section>
        <div className="flex flex-col gap-4">
          <Field label="Logs of">
            <Select
              value={form.source}
              onChange={(event) => change({ source: event.target.value as LogSource })}
            >
              <option value="run">A run</option>
              <option value="volume">A directory of a volume</option>
              <option value="bucket">A bucket</option>
            </Select>
          </Field>
          {form.source === "run" && (
            <RunLogs form={form} change={change} problem={problems.run} local={local} />
          )}
          {form.source === "volume" && (
            <VolumeLogs form={form} change={change} problems={problems} namespace={namespace} />
          )}
          {form.source === "bucket" && (
            <Field
              label="Address"
              hint={
                local
                  ? "It is read with the credentials of this machine."
                  : "It is read with the credentials of the namespace, or of a configuration."
              }
              error={problems.address}
            >
              <Input
                value={form.address}
                spellCheck={false}
                placeholder="s3://bucket/path"
                onChange={(event) => change({ address: event.target.value })}
              />
            </Field>
          )}
          {form.source !== "run" && (
            <NameField
              name={form.name}
              error={problems.name}
              onChange={(name) => change({ name })}
            />
          )}
        </div>
      </Section>
      {!local && (
        <Disclosure title="Configurations" summary={form.configurations.join(", ") || "None"}>
          <Configurations form={form} change={change} namespace={namespace} />
        </Disclosure>
      )}
    </FormFrame>
  );
}

interface FieldProps {
  form: BoardForm;
  change: (part: Partial<BoardForm>) => void;
  namespace: string;
}

function VolumeLogs({
  form,
  change,
  problems,
  namespace,
}: FieldProps & { problems: Record<string, string> }) {
  const { data: volumes = [] } = useQuery(volumesQuery(namespace));
  const names = volumes.map(({ name }) => name);
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <Field label="Volume" error={problems.volume}>
        <Select value={form.volume} onChange={(event) => change({ volume: event.target.value })}>
          <option value="">Choose a volume</option>
          {[...(form.volume && !names.includes(form.volume) ? [form.volume] : []), ...names].map(
            (name) => (
              <option key={name}>{name}</option>
            ),
          )}
        </Select>
      </Field>
      <Field label="Directory" hint="Empty: all of the volume." error={problems.path}>
        <Input
          value={form.path}
          spellCheck={false}
          placeholder="training/logs"
          onChange={(event) => change({ path: event.target.value })}
        />
      </Field>
    </div>
  );
}

function Configurations({ form, change, namespace }: FieldProps) {
  const { data: found = [] } = useQuery(configurationsQuery(namespace));
  if (found.length === 0) {
    return <p className="text-quiet">There are no configurations in this namespace.</p>;
  }
  return (
    <div className="flex flex-col gap-2">
      {found.map(({ label, desc }) => (
        <Checkbox
          key={label}
          label={desc}
          checked={form.configurations.includes(label)}
          onChange={(event) =>
            change({
              configurations: event.target.checked
                ? [...form.configurations, label]
                : form.configurations.filter((one) => one !== label),
            })
          }
        />
      ))}
    </div>
  );
}
