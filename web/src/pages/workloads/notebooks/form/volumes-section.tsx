import { useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { Button, IconButton } from "@/components/button";
import { Checkbox, Field, Input, Select } from "@/components/fields/field";
import { snapshotsQuery, volumesQuery } from "../../api/queries";
import { StorageClassOptions } from "../../form/storage-class-options";
import { formatQuantity } from "../format-resources";
import { FIXED, isReadOnly, type SectionProps } from "./sections";
import {
  ACCESS_MODES,
  HOME,
  newVolume,
  PLACEHOLDER,
  resolveName,
  type VolumeChoice,
  type VolumeSource,
} from "./volume-choice";

/** The workspace and the data volumes. */
export function VolumeFields(props: SectionProps) {
  const { form, change, config, backend } = props;
  const workspaceFixed = isReadOnly(config, "workspaceVolume");
  const dataFixed = isReadOnly(config, "dataVolumes");
  const replace = (key: string, volume: VolumeChoice | null) =>
    change({ data: form.data.flatMap((one) => (one.key === key ? (volume ?? []) : one)) });
  return (
    <>
      <p className="text-quiet">
        What you save in volumes is kept when the notebook is stopped or deleted.
        {!backend.features.snapshots &&
          ` New volumes begin empty: ${noSnapshots(backend.kind === "local")} from which they could be copied.`}
      </p>
      {form.workspace ? (
        <VolumeRow
          {...props}
          title="Workspace"
          volume={form.workspace}
          fixed={workspaceFixed}
          onChange={(workspace) => change({ workspace })}
        />
      ) : (
        !workspaceFixed && (
          <div>
            <Button
              onClick={() =>
                change({
                  workspace: { ...newVolume(0), name: `${PLACEHOLDER}-workspace`, mount: HOME },
                })
              }
            >
              <Plus size={15} aria-hidden /> Add a workspace
            </Button>
          </div>
        )
      )}
      {form.data.map((volume, index) => (
        <VolumeRow
          {...props}
          key={volume.key}
          title={`Data volume ${index + 1}`}
          volume={volume}
          fixed={dataFixed}
          onChange={(next) => replace(volume.key, next)}
        />
      ))}
      {dataFixed ? (
        <p className="text-quiet">Data volumes: {FIXED.toLowerCase()}</p>
      ) : (
        <div>
          <Button onClick={() => change({ data: [...form.data, newVolume(form.data.length)] })}>
            <Plus size={15} aria-hidden /> Add a data volume
          </Button>
        </div>
      )}
    </>
  );
}

function VolumeRow({
  title,
  volume,
  fixed,
  onChange,
  form,
  backend,
  namespace,
  problems,
}: SectionProps & {
  title: string;
  volume: VolumeChoice;
  fixed: boolean;
  onChange: (volume: VolumeChoice | null) => void;
}) {
  const volumes = useQuery(volumesQuery(namespace)).data ?? [];
  const local = backend.kind === "local";
  const set = (part: Partial<VolumeChoice>) => onChange({ ...volume, ...part });
  const problem = problems[volume.key];
  return (
    <fieldset
      className="min-w-0 rounded-md border border-line p-3"
      disabled={fixed}
      data-problem={problem ? "" : undefined}
    >
      <legend className="px-1 font-medium">{title}</legend>
      <div className="grid gap-3 sm:grid-cols-2">
        <Field label="Source" hint={fixed ? FIXED : undefined}>
          <Select
            value={volume.source}
            onChange={(event) => set(changeSource(volume, event.target.value as VolumeSource))}
          >
            <option value="new">New volume</option>
            <option value="existing">Existing volume</option>
            <option value="snapshot" disabled={!backend.features.snapshots}>
              From a snapshot{backend.features.snapshots ? "" : ` (${lacking(local)})`}
            </option>
            {volume.other && <option value="other">{Object.keys(volume.other)[0]}</option>}
          </Select>
        </Field>
        {volume.source === "existing" && (
          <Field label="Volume">
            <Select value={volume.name} onChange={(event) => set({ name: event.target.value })}>
              <option value="">Choose a volume</option>
              {volumes.every(({ name }) => name !== volume.name) && volume.name && (
                <option>{volume.name}</option>
              )}
              {volumes.map(({ name, capacity }) => (
                <option key={name} value={name}>
                  {capacity && !local ? `${name} (${formatQuantity(capacity)})` : name}
                </option>
              ))}
            </Select>
          </Field>
        )}
        {(volume.source === "new" || volume.source === "snapshot") && (
          <NewVolumeFields
            volume={volume}
            set={set}
            notebook={form.name}
            local={local}
            namespace={namespace}
          />
        )}
        {!local && volume.source !== "other" && (
          <Field label="Path in the notebook">
            <Input
              value={resolveName(volume.mount, form.name)}
              spellCheck={false}
              onChange={(event) => set({ mount: event.target.value })}
            />
          </Field>
        )}
      </div>
      {problem && (
        <p role="alert" className="mt-2 text-failure">
          {problem}
        </p>
      )}
      <div className="mt-3 flex flex-wrap items-center justify-between gap-2">
        {local ? (
          <span className="text-quiet">
            It is the folder {resolveName(volume.name, form.name)} in JupyterLab.
          </span>
        ) : (
          <Checkbox
            label="Read only"
            checked={volume.readOnly}
            onChange={(event) => set({ readOnly: event.target.checked })}
          />
        )}
        {!fixed && (
          <IconButton label={`Remove ${title.toLowerCase()}`} onClick={() => onChange(null)}>
            <Trash2 size={15} aria-hidden />
          </IconButton>
        )}
      </div>
    </fieldset>
  );
}

function NewVolumeFields({
  volume,
  set,
  notebook,
  local,
  namespace,
}: {
  volume: VolumeChoice;
  set: (part: Partial<VolumeChoice>) => void;
  notebook: string;
  local: boolean;
  namespace: string;
}) {
  const snapshots = useQuery({
    ...snapshotsQuery(namespace),
    enabled: volume.source === "snapshot",
  }).data;
  return (
    <>
      {volume.source === "snapshot" && (
        <Field label="Snapshot">
          <Select
            value={volume.snapshot}
            onChange={(event) => set({ snapshot: event.target.value })}
          >
            <option value="">Choose a snapshot</option>
            {snapshots?.map(({ name, volume: source, size }) => (
              <option key={name} value={name}>
                {[name, source && `of ${source}`, size].filter(Boolean).join(", ")}
              </option>
            ))}
          </Select>
        </Field>
      )}
      <Field label="Volume name">
        <Input
          value={resolveName(volume.name, notebook)}
          spellCheck={false}
          onChange={(event) => set({ name: event.target.value })}
        />
      </Field>
      {!local && (
        <>
          <Field label="Size in GiB">
            <Input
              inputMode="decimal"
              value={volume.size}
              onChange={(event) => set({ size: event.target.value })}
            />
          </Field>
          <Field label="Access">
            <Select value={volume.mode} onChange={(event) => set({ mode: event.target.value })}>
              {Object.entries(ACCESS_MODES).map(([mode, label]) => (
                <option key={mode} value={mode}>
                  {label}
                </option>
              ))}
            </Select>
          </Field>
          <Field label="Storage class">
            <Select
              value={volume.storageClass}
              onChange={(event) => set({ storageClass: event.target.value })}
            >
              <StorageClassOptions />
            </Select>
          </Field>
        </>
      )}
    </>
  );
}

/** A volume with another source keeps what has a meaning for it. */
export function changeSource(volume: VolumeChoice, source: VolumeSource): Partial<VolumeChoice> {
  const wasNew = volume.source === "new" || volume.source === "snapshot";
  const isNew = source === "new" || source === "snapshot";
  if (wasNew === isNew) return { source };
  return { source, name: isNew ? `${PLACEHOLDER}-data` : "" };
}

export function noSnapshots(local: boolean): string {
  return local ? "this machine has no snapshots" : "this cluster has no snapshots";
}

function lacking(local: boolean): string {
  return local ? "this machine has none" : "this cluster has none";
}
