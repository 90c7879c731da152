import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { Keyboard, LogOut, Menu as MenuIcon, Search } from "lucide-react";
import { lazy, Suspense, useEffect, useState } from "react";
import { useChanges } from "@/api/changes";
import { fetchText } from "@/api/client";
import { Button, IconButton } from "@/components/button";
import { classes } from "@/components/classes";
import { Skeleton } from "@/components/feedback";
import { Announcements, announce } from "@/components/overlays/announcements";
import { ConnectionNotice } from "./connection-notice";
import { ENTRIES, isEntryOf } from "./navigation";
import { usePageFocus } from "./page-focus";
import { useShortcuts } from "./shortcuts";
import { ThemeSwitch } from "./theme";

const CommandPalette = lazy(() => import("./command-palette"));
const ShortcutHelp = lazy(() => import("./shortcut-help"));

/** The frame of the app: navigation on the left, the page on the right. */
export function Shell() {
  useChanges();
  usePageFocus();
  const path = useLocation({ select: ({ pathname }) => pathname });
  const [navigating, setNavigating] = useState(false);
  const [searching, setSearching] = useState(false);
  const [helping, setHelping] = useState(false);
  useShortcuts({ onSearch: () => setSearching(true), onHelp: () => setHelping(true) });
  useEffect(() => {
    if (!navigating) return;
    const close = (event: KeyboardEvent) => event.key === "Escape" && setNavigating(false);
    window.addEventListener("keydown", close);
    return () => window.removeEventListener("keydown", close);
  }, [navigating]);
  return (
    <div className="flex min-h-screen">
      <a
        href="#content"
        className="sr-only z-50 rounded-md bg-raised p-2 focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
      >
        Skip to the content
      </a>
      <nav
        aria-label="Main"
        className={`${navigating ? "flex" : "hidden"} fixed inset-y-0 left-0 z-30 w-56 shrink-0 flex-col gap-0.5 border-r border-line bg-surface p-3 md:sticky md:top-0 md:flex md:h-screen`}
      >
        <Link
          to="/"
          className="mb-3 flex items-center gap-2 px-2 text-lg font-semibold"
          onClick={() => setNavigating(false)}
        >
          <img src="/assets/icon.svg" alt="" width={24} height={24} /> Clew
        </Link>
        {ENTRIES.map((entry) => {
          const { label, to, icon: Icon } = entry;
          const isCurrent = isEntryOf(entry, path);
          return (
            <Link
              key={to}
              to={to}
              aria-current={isCurrent ? "page" : undefined}
              className={classes(
                "flex items-center gap-2.5 rounded-md px-2.5 py-1.5 hover:bg-sunken",
                isCurrent && "bg-accent-soft font-medium text-accent",
              )}
              onClick={() => setNavigating(false)}
            >
              <Icon size={17} aria-hidden /> {label}
            </Link>
          );
        })}
        <div className="mt-auto flex flex-col gap-1">
          <ThemeSwitch />
          <Button look="quiet" className="justify-start" onClick={() => setHelping(true)}>
            <Keyboard size={16} aria-hidden className="shrink-0" /> Keyboard shortcuts
          </Button>
          <Button look="quiet" className="justify-start" onClick={logOut}>
            <LogOut size={16} aria-hidden className="shrink-0" /> Log out
          </Button>
        </div>
      </nav>
      {navigating && (
        <button
          type="button"
          aria-label="Close the navigation"
          className="fixed inset-0 z-20 bg-black/40 md:hidden"
          onClick={() => setNavigating(false)}
        />
      )}
      <div className="flex min-w-0 flex-1 flex-col">
        <header className="sticky top-0 z-10 flex items-center gap-2 border-b border-line bg-surface px-3 py-1.5">
          <span className="md:hidden">
            <IconButton
              label="Open the navigation"
              aria-expanded={navigating}
              onClick={() => setNavigating(true)}
            >
              <MenuIcon size={18} aria-hidden />
            </IconButton>
          </span>
          <Button
            className="w-full max-w-md justify-start text-quiet"
            onClick={() => setSearching(true)}
          >
            <Search size={15} aria-hidden />
            <span className="flex-1 text-left">Search files, runs, notebooks…</span>
            <kbd className="text-sm">{isMac() ? "⌘K" : "Ctrl K"}</kbd>
          </Button>
        </header>
        <ConnectionNotice />
        <main id="content" tabIndex={-1} className="min-w-0 flex-1 outline-none">
          <Suspense
            fallback={
              <div className="p-6">
                <Skeleton />
              </div>
            }
          >
            <Outlet />
          </Suspense>
        </main>
      </div>
      <Suspense>
        {searching && <CommandPalette onClose={() => setSearching(false)} />}
        {helping && <ShortcutHelp onClose={() => setHelping(false)} />}
      </Suspense>
      <Announcements />
    </div>
  );
}

async function logOut(): Promise<void> {
  try {
    await fetchText("/logout", { method: "POST" });
    window.location.reload(); // the server answers with the page to log in
  } catch (error) {
    announce(`You are still logged in: ${(error as Error).message}`, "failure");
  }
}

function isMac(): boolean {
  return navigator.platform.startsWith("Mac");
}
