import { useSyncExternalStore } from "react";

function subscribe(notify: () => void): () => void {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", notify);
  const observer = new MutationObserver(notify);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    dark.removeEventListener("change", notify);
    observer.disconnect();
  };
}

function read(): string {
  const chosen = document.documentElement.dataset.theme;
  return chosen ?? String(window.matchMedia("(prefers-color-scheme: dark)").matches);
}

/** Differs after the theme has changed: what draws on a canvas draws again. */
export function useTheme(): string {
  return useSyncExternalStore(subscribe, read);
}
