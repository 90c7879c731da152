import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useId } from "react";
import { ErrorCard } from "@/components/feedback";
import { Checkbox, Field, Input, Select } from "@/components/fields/field";
import { type Trigger, timesQuery } from "../api";
import { cronWords, intervalWords, whenWords } from "../schedules/words";

type Rhythm = "interval" | "daily" | "weekly" | "monthly" | "cron";

/** What the user typed about the times of a schedule. */
export interface Timing {
  rhythm: Rhythm;
  every: string;
  unit: string;
  time: string;
  days: string[];
  day: string;
  cron: string;
  starts: string;
  ends: string;
  concurrency: string;
  catchup: boolean;
}

export const INITIAL_TIMING: Timing = {
  rhythm: "daily",
  every: "1",
  unit: "3600",
  time: "09:00",
  days: ["MON"],
  day: "1",
  cron: "0 30 9 * * MON-FRI",
  starts: "",
  ends: "",
  concurrency: "1",
  catchup: false,
};
const RHYTHMS: [Rhythm, string][] = [
  ["interval", "Every so many minutes, hours or days"],
  ["daily", "Every day"],
  ["weekly", "On days of the week"],
  ["monthly", "On a day of the month"],
  ["cron", "Cron expression"],
];
const UNITS: [string, string][] = [
  ["60", "minutes"],
  ["3600", "hours"],
  ["86400", "days"],
];
const DAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
const MAX_CONCURRENCY = 10;

export type ParsedTiming =
  | { trigger: Trigger & { max_concurrency: number; catchup: boolean } }
  | { errors: Partial<Record<keyof Timing, string>> };

/** The trigger of a schedule, or what is wrong. Times of day are in UTC, as the server takes them. */
export function parseTiming(timing: Timing): ParsedTiming {
  const errors: Partial<Record<keyof Timing, string>> = {};
  const trigger: Trigger = {};
  const time = /^(\d{2}):(\d{2})$/.exec(timing.time);
  const at = time ? `0 ${Number(time[2])} ${Number(time[1])}` : "";
  if (timing.rhythm === "interval") {
    const seconds = Number(timing.every) * Number(timing.unit);
    if (!/^\d+$/.test(timing.every.trim()) || seconds < 1) errors.every = "Enter a whole number.";
    else trigger.interval = seconds;
  } else if (timing.rhythm === "cron") {
    if (!timing.cron.trim()) errors.cron = "Enter six fields, seconds first.";
    else trigger.cron = timing.cron.trim();
  } else if (!at) {
    errors.time = "Enter a time, such as 09:00.";
  } else if (timing.rhythm === "weekly") {
    if (!timing.days.length) errors.days = "Choose at least one day.";
    else trigger.cron = `${at} * * ${DAYS.filter((day) => timing.days.includes(day)).join(",")}`;
  } else if (timing.rhythm === "monthly") {
    const day = Number(timing.day);
    if (!Number.isInteger(day) || day < 1 || day > 31) errors.day = "Enter a day from 1 to 31.";
    else trigger.cron = `${at} ${day} * *`;
  } else {
    trigger.cron = `${at} * * *`;
  }
  if (timing.starts) trigger.starts = new Date(timing.starts).toISOString();
  if (timing.ends) trigger.ends = new Date(timing.ends).toISOString();
  if (trigger.starts && trigger.ends && trigger.ends <= trigger.starts)
    errors.ends = "It ends before it starts.";
  const concurrency = Number(timing.concurrency);
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > MAX_CONCURRENCY)
    errors.concurrency = `Enter a number from 1 to ${MAX_CONCURRENCY}.`;
  if (Object.keys(errors).length) return { errors };
  return { trigger: { ...trigger, max_concurrency: concurrency, catchup: timing.catchup } };
}

/** The times of a schedule, with the next ones in words. */
export function TimingFields({
  timing,
  onChange,
  errors,
}: {
  timing: Timing;
  onChange: (timing: Timing) => void;
  errors: Partial<Record<keyof Timing, string>>;
}) {
  const set = (changes: Partial<Timing>) => onChange({ ...timing, ...changes });
  const { rhythm } = timing;
  return (
    <div className="flex flex-col gap-4">
      <div className="grid items-start gap-4 sm:grid-cols-2">
        <Field label="Repeat">
          <Select
            value={rhythm}
            onChange={(event) => set({ rhythm: event.target.value as Rhythm })}
          >
            {RHYTHMS.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </Select>
        </Field>
        {rhythm === "interval" && (
          <div className="grid grid-cols-2 items-start gap-2">
            <Field label="Every" error={errors.every}>
              <Input
                inputMode="numeric"
                value={timing.every}
                onChange={(event) => set({ every: event.target.value })}
              />
            </Field>
            <Field label="Unit">
              <Select value={timing.unit} onChange={(event) => set({ unit: event.target.value })}>
                {UNITS.map(([value, label]) => (
                  <option key={value} value={value}>
                    {label}
                  </option>
                ))}
              </Select>
            </Field>
          </div>
        )}
        {rhythm === "cron" && (
          <Field
            label="Cron expression"
            error={errors.cron}
            hint="Six fields: second, minute, hour, day, month, day of the week. In UTC."
          >
            <Input
              className="font-mono"
              spellCheck={false}
              value={timing.cron}
              onChange={(event) => set({ cron: event.target.value })}
            />
          </Field>
        )}
        {rhythm === "monthly" && (
          <Field label="Day of the month" error={errors.day}>
            <Input
              inputMode="numeric"
              value={timing.day}
              onChange={(event) => set({ day: event.target.value })}
            />
          </Field>
        )}
        {(rhythm === "daily" || rhythm === "weekly" || rhythm === "monthly") && (
          <Field label="Time (UTC)" error={errors.time}>
            <Input
              type="time"
              value={timing.time}
              onChange={(event) => set({ time: event.target.value })}
            />
          </Field>
        )}
      </div>
      {rhythm === "weekly" && (
        <DayChooser days={timing.days} error={errors.days} onChange={(days) => set({ days })} />
      )}
      <NextTimes timing={timing} />
      <div className="grid items-start gap-4 sm:grid-cols-3">
        <Field label="Starts" hint="Optional, in your time zone.">
          <Input
            type="datetime-local"
            value={timing.starts}
            onChange={(event) => set({ starts: event.target.value })}
          />
        </Field>
        <Field label="Ends" hint="Optional." error={errors.ends}>
          <Input
            type="datetime-local"
            value={timing.ends}
            onChange={(event) => set({ ends: event.target.value })}
          />
        </Field>
        <Field
          label="Runs at the same time"
          hint="At most; later ones wait."
          error={errors.concurrency}
        >
          <Input
            inputMode="numeric"
            value={timing.concurrency}
            onChange={(event) => set({ concurrency: event.target.value })}
          />
        </Field>
      </div>
      <Checkbox
        label="Catch up: run every time that was missed while the server was not running"
        checked={timing.catchup}
        onChange={(event) => set({ catchup: event.target.checked })}
      />
    </div>
  );
}

function DayChooser({
  days,
  error,
  onChange,
}: {
  days: string[];
  error: string | undefined;
  onChange: (days: string[]) => void;
}) {
  const id = useId();
  return (
    <fieldset
      className="flex flex-wrap gap-x-4 gap-y-1"
      aria-describedby={error ? `${id}-note` : undefined}
    >
      <legend className="mb-1 font-medium">Days</legend>
      {DAYS.map((day) => (
        <Checkbox
          key={day}
          label={day.charAt(0) + day.slice(1).toLowerCase()}
          checked={days.includes(day)}
          aria-invalid={error ? true : undefined}
          onChange={(event) =>
            onChange(event.target.checked ? [...days, day] : days.filter((one) => one !== day))
          }
        />
      ))}
      {error && (
        <p id={`${id}-note`} className="w-full text-failure">
          {error}
        </p>
      )}
    </fieldset>
  );
}

/** The rhythm in words, and when it would run next; or why the server rejects it. */
function NextTimes({ timing }: { timing: Timing }) {
  const parsed = parseTiming(useDeferredValue(timing));
  const {
    max_concurrency: _,
    catchup: __,
    ...trigger
  } = "trigger" in parsed ? parsed.trigger : { max_concurrency: 1, catchup: false };
  const { data, error } = useQuery({ ...timesQuery(trigger), enabled: "trigger" in parsed });
  if (!("trigger" in parsed)) return null;
  if (error) return <ErrorCard error={error} />;
  const words = trigger.cron ? cronWords(trigger.cron) : intervalWords(trigger.interval ?? 1);
  return (
    <p role="status" className="rounded-md bg-sunken px-3 py-2">
      <span className="font-medium">Runs {words}.</span>{" "}
      {data?.length === 0 ? (
        <span className="text-failure">It would never run: it ends before its first time.</span>
      ) : (
        data && (
          <span className="text-quiet">
            In your time zone: {data.map((at) => whenWords(at)).join(", then ")}.
          </span>
        )
      )}
    </p>
  );
}
