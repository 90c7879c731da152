import { Monitor, Moon, Sun } from "lucide-react";
import { useState } from "react";
import { Button } from "@/components/button";

const KEY = "clew-theme";
const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const ICONS = { system: Monitor, light: Sun, dark: Moon };

export function currentTheme(): Theme {
  const theme = document.documentElement.dataset.theme;
  return theme === "light" || theme === "dark" ? theme : "system";
}

/** Apply a theme, and keep it for the next visit (`public/assets/theme.js` reads it). */
export function applyTheme(theme: Theme): void {
  document.documentElement.style.removeProperty("color-scheme");
  if (theme === "system") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(KEY, theme);
  }
}

/** Switches from one theme to the next. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(currentTheme);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] as Theme;
  const Icon = ICONS[theme];
  return (
    <Button
      look="quiet"
      className="justify-start"
      onClick={() => {
        applyTheme(next);
        setTheme(next);
      }}
    >
      <Icon size={16} aria-hidden /> Theme: {theme}
    </Button>
  );
}
