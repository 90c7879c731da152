import { Monitor, Moon, Sun } from "lucide-react";
import { useSyncExternalStore } from "react";
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
  for (const listener of listeners) listener();
}

/** The theme in force; the component is drawn again when it is changed. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, currentTheme);
}

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Switches from one theme to the next. */
export function ThemeSwitch() {
  const theme = useTheme();
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] as Theme;
  const Icon = ICONS[theme];
  return (
    <Button look="quiet" className="justify-start" onClick={() => applyTheme(next)}>
      <Icon size={16} aria-hidden /> Theme: {theme}
    </Button>
  );
}
