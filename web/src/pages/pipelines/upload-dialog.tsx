import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { FileUp } from "lucide-react";
import { type DragEvent, type FormEvent, useId, useRef, useState } from "react";
import { Button } from "@/components/button";
import { ErrorCard } from "@/components/feedback";
import { Field, Input } from "@/components/fields/field";
import { Dialog } from "@/components/overlays/dialog";
import { type Pipeline, uploadPipeline } from "./api";

const SUFFIX = /(\.tar\.gz|\.tgz|\.yaml|\.yml|\.zip|\.json)$/i;

/** Upload a compiled pipeline: a new one, or a version of `pipeline`. */
export function UploadDialog({
  open,
  onClose,
  pipeline,
}: {
  open: boolean;
  onClose: () => void;
  pipeline?: Pipeline;
}) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={pipeline ? `Upload a version of ${pipeline.display_name}` : "Upload a pipeline"}
    >
      <UploadForm onClose={onClose} pipeline={pipeline} />
    </Dialog>
  );
}

function UploadForm({ onClose, pipeline }: { onClose: () => void; pipeline?: Pipeline }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [file, setFile] = useState<File | null>(null);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);

  function choose(chosen: File | null) {
    setFile(chosen);
    setError(null);
    const stem = chosen?.name.replace(SUFFIX, "") ?? "";
    // Versions have names of their own: a second upload of pipeline.yaml must not need thought.
    setName(pipeline && stem ? `${stem} ${timestamp()}` : stem);
  }

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (!file || busy) return;
    setBusy(true);
    setError(null);
    try {
      const made = await uploadPipeline(file, { name, description, pipeline: pipeline?.id });
      await client.invalidateQueries({ queryKey: ["catalogue"] });
      navigate({
        to: "/pipelines/$id",
        params: { id: made.pipeline_id },
        search: { version: made.pipeline_version_id },
      });
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  }

  return (
    <form className="flex flex-col gap-4" onSubmit={submit}>
      <FileChooser file={file} onChoose={choose} />
      <Field label={pipeline ? "Name of the version" : "Name"}>
        <Input value={name} required maxLength={255} onChange={(e) => setName(e.target.value)} />
      </Field>
      <Field label="Description" hint="Optional.">
        <Input value={description} onChange={(event) => setDescription(event.target.value)} />
      </Field>
      {error !== null && <ErrorCard error={error} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" disabled={!file || !name.trim() || busy}>
          {busy ? "Uploading…" : "Upload"}
        </Button>
      </div>
    </form>
  );
}

function FileChooser({
  file,
  onChoose,
}: {
  file: File | null;
  onChoose: (file: File | null) => void;
}) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    onChoose(event.dataTransfer.files[0] ?? null);
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is an extra; the button does the same
    <div
      className={`flex flex-col items-center gap-2 rounded-lg border border-dashed px-4 py-6 text-center ${over ? "border-accent bg-accent-soft" : "border-line-strong"}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <FileUp size={22} aria-hidden className="text-quiet" />
      <label htmlFor={id} className="sr-only">
        Compiled pipeline
      </label>
      <input
        ref={input}
        id={id}
        type="file"
        tabIndex={-1}
        className="sr-only"
        accept=".yaml,.yml,.zip,.tgz,.gz,.json"
        onChange={(event) => onChoose(event.target.files?.[0] ?? null)}
      />
      <Button onClick={() => input.current?.click()}>
        {file ? "Choose another file" : "Choose a file"}
      </Button>
      <p className="max-w-full break-words">
        {file ? (
          <strong>{file.name}</strong>
        ) : (
          <span className="text-quiet">
            or drop it here: what the kfp SDK compiles, as .yaml, .zip or .tar.gz, up to 32 MB
          </span>
        )}
      </p>
    </div>
  );
}

function timestamp(): string {
  const now = new Date();
  const two = (number: number) => String(number).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())} ${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`;
}
