import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { CalendarClock, Play } from "lucide-react";
import { type FormEvent, useMemo, useRef, useState } from "react";
import type { Schemas } from "@/api/client";
import { Button } from "@/components/button";
import { ErrorCard } from "@/components/feedback";
import { Checkbox, Field, Input } from "@/components/fields/field";
import { Section } from "@/components/page";
import { createSchedule, newKey, type StartRequest, startRun } from "../api";
import { part, textOf } from "../spec/ir";
import { initialTexts, parseForm, readArtifactInputs, readParameters } from "../spec/parameters";
import { ExperimentField } from "./experiment-field";
import { ParameterFields } from "./parameter-fields";
import { INITIAL_TIMING, parseTiming, TimingFields } from "./schedule-times";

const route = getRouteApi("/pipelines/start");

interface Props {
  spec: unknown;
  source: { pipeline?: string; version?: string; spec?: string };
  /** The values of an earlier run. */
  given?: Schemas["RunTemplate"];
}

/** The parameters and options of a run or a schedule. */
export function StartForm({ spec, source, given }: Props) {
  const { experiment: asked, when } = route.useSearch();
  const search = route.useSearch();
  const navigate = useNavigate();
  const client = useQueryClient();
  const parameters = useMemo(() => readParameters(spec), [spec]);
  const artifacts = useMemo(() => readArtifactInputs(spec), [spec]);
  const [texts, setTexts] = useState(() =>
    initialTexts(parameters, given?.parameters as Record<string, unknown> | undefined),
  );
  const [name, setName] = useState(given?.name || textOf(part(spec, "pipelineInfo").name));
  const [description, setDescription] = useState(given?.description ?? "");
  const [experiment, setExperiment] = useState(asked ?? given?.experiment ?? "");
  const [reuse, setReuse] = useState(given?.reuse ?? true);
  const [timing, setTiming] = useState(INITIAL_TIMING);
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const sent = useRef({ body: "", key: "" });
  const form = useRef<HTMLFormElement>(null);
  const isSchedule = when === "schedule";
  const { values, errors } = parseForm(parameters, texts);
  const times = parseTiming(timing);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (busy) return;
    if (Object.keys(errors).length || (isSchedule && "errors" in times)) {
      requestAnimationFrame(() =>
        form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(),
      );
      return;
    }
    setBusy(true);
    setError(null);
    const body: StartRequest = {
      ...source,
      name,
      description,
      experiment: experiment || undefined,
      parameters: values,
      reuse,
    };
    const request = isSchedule && "trigger" in times ? { ...body, ...times.trigger } : body;
    // What was sent already has a key: sending it again, after a lost answer, starts nothing twice.
    const text = JSON.stringify(request);
    if (sent.current.body !== text) sent.current = { body: text, key: newKey() };
    try {
      if (isSchedule && "trigger" in times) {
        const made = await createSchedule({ ...body, ...times.trigger }, sent.current.key);
        await client.invalidateQueries({ queryKey: ["catalogue"] });
        navigate({ to: "/schedules", search: { schedule: made.id } });
      } else {
        const made = await startRun(body, sent.current.key);
        await client.invalidateQueries({ queryKey: ["runs"] });
        navigate({ to: "/runs/$id", params: { id: made.id ?? made.uid } });
      }
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  }

  return (
    <form ref={form} className="flex flex-col gap-4" onSubmit={submit} noValidate>
      <Section title="Parameters">
        <ParameterFields
          parameters={parameters}
          texts={texts}
          errors={errors}
          showMissing={tried}
          onChange={(parameter, text) => setTexts((before) => ({ ...before, [parameter]: text }))}
        />
        {artifacts.length > 0 && (
          <p className="mt-3 text-failure">
            The pipeline wants {artifacts.join(", ")} as an artifact, which nobody can type. Let it
            import it with dsl.importer.
          </p>
        )}
      </Section>
      <Section title={isSchedule ? "Schedule" : "Run"}>
        <div className="flex flex-col gap-4">
          <div className="grid gap-4 sm:grid-cols-2">
            <Field label="Name">
              <Input value={name} maxLength={200} onChange={(e) => setName(e.target.value)} />
            </Field>
            <ExperimentField value={experiment} onChange={setExperiment} />
          </div>
          <Field label="Description" hint="Optional.">
            <Input value={description} onChange={(event) => setDescription(event.target.value)} />
          </Field>
          <Checkbox
            label="Reuse the results of tasks whose inputs have not changed"
            checked={reuse}
            onChange={(event) => setReuse(event.target.checked)}
          />
        </div>
      </Section>
      <Section title="When">
        <div className="flex flex-col gap-4">
          <div className="flex flex-wrap gap-x-6 gap-y-2" role="radiogroup" aria-label="When">
            {(["now", "schedule"] as const).map((one) => (
              <label key={one} className="inline-flex items-center gap-2">
                <input
                  type="radio"
                  name="when"
                  className="size-4 accent-accent"
                  checked={isSchedule === (one === "schedule")}
                  onChange={() =>
                    navigate({
                      to: "/pipelines/start",
                      search: { ...search, when: one === "schedule" ? one : undefined },
                      replace: true,
                    })
                  }
                />
                {one === "now" ? "Once, now" : "On a schedule"}
              </label>
            ))}
          </div>
          {isSchedule && (
            <TimingFields
              timing={timing}
              onChange={setTiming}
              errors={tried && "errors" in times ? times.errors : {}}
            />
          )}
        </div>
      </Section>
      {error !== null && <ErrorCard error={error} />}
      <div className="flex gap-2">
        <Button type="submit" look="primary" disabled={busy || !name.trim()}>
          {isSchedule ? <CalendarClock size={15} aria-hidden /> : <Play size={15} aria-hidden />}
          {isSchedule ? "Create the schedule" : "Start the run"}
        </Button>
      </div>
    </form>
  );
}
