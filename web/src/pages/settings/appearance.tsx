import { useState } from "react";
import { Field, Select } from "@/components/field";
import { Section } from "@/components/page";
import { applyTheme, currentTheme, type Theme } from "@/layout/theme";

export function Appearance() {
  const [theme, setTheme] = useState(currentTheme);
  return (
    <Section title="Appearance">
      <div className="max-w-xs">
        <Field label="Theme" hint="Kept in this browser.">
          <Select
            value={theme}
            onChange={(event) => {
              const chosen = event.target.value as Theme;
              applyTheme(chosen);
              setTheme(chosen);
            }}
          >
            <option value="system">As the system</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </Select>
        </Field>
      </div>
    </Section>
  );
}
