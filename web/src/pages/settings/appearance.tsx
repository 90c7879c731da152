import { useState } from "react";
import { Field, Select } from "@/components/fields/field";
import { applyZone, currentZone, formatExact, type Zone } from "@/components/format/time";
import { Section } from "@/components/page";
import { applyTheme, type Theme, useTheme } from "@/layout/theme";

/** How the app looks in this browser. */
export function Appearance() {
  const theme = useTheme();
  const [zone, setZone] = useState(currentZone);
  return (
    <Section title="Appearance">
      <p className="mb-4 text-quiet">Kept in this browser.</p>
      <div className="flex max-w-xs flex-col gap-4">
        <Field label="Theme">
          <Select value={theme} onChange={(event) => applyTheme(event.target.value as Theme)}>
            <option value="system">As the system</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </Select>
        </Field>
        <Field label="Exact times" hint={`Such as ${formatExact(new Date(), zone)}.`}>
          <Select
            value={zone}
            onChange={(event) => {
              const chosen = event.target.value as Zone;
              applyZone(chosen);
              setZone(chosen);
            }}
          >
            <option value="local">In the time zone of this browser</option>
            <option value="utc">In UTC, as on the command line</option>
          </Select>
        </Field>
      </div>
    </Section>
  );
}
