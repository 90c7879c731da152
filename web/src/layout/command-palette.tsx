import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog } from "radix-ui";
import { useState } from "react";
import { type Hit, SearchHit, useSearch } from "@/components/search-hit";
import { ENTRIES } from "./navigation";
import { usePaletteEntries } from "./palette-entries";

const MAX_HITS = 20;
const ITEM =
  "flex cursor-pointer items-center gap-2 rounded-md px-3 py-2 data-[selected=true]:bg-sunken";

/** Search over pages and what they list, files, models, images, executions, runs and processes. */
export default function CommandPalette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const navigate = useNavigate();
  const { hits, isLongEnough, isFetching } = useSearch(text, MAX_HITS);
  const entries = usePaletteEntries(text, isLongEnough);
  function open(action: () => void) {
    onClose();
    action();
  }
  /** Executions and runs have a page of their own; of everything else the lineage is shown. */
  function openHit(hit: Hit) {
    if (hit.kind === "execution" || hit.kind === "run") {
      navigate({ to: "/runs/$id", params: { id: hit.id } });
    } else navigate({ to: "/lineage", search: { target: hit.id, node: hit.id } });
  }
  const words = text.trim().toLowerCase();
  const pages = ENTRIES.filter(({ label }) => label.toLowerCase().includes(words));
  return (
    <Dialog.Root open onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/50" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed top-[12vh] left-1/2 z-50 w-[calc(100vw-2rem)] max-w-2xl -translate-x-1/2 rounded-xl border border-line bg-raised shadow-xl"
        >
          <Dialog.Title className="sr-only">Search</Dialog.Title>
          <Command shouldFilter={false} label="Search">
            <Command.Input
              value={text}
              onValueChange={setText}
              placeholder="Search files, runs, commands, digests, pages…"
              className="w-full border-b border-line bg-transparent px-4 py-3 text-base outline-none placeholder:text-quiet"
            />
            <Command.List className="max-h-[50vh] overflow-y-auto p-2">
              <Command.Empty className="px-3 py-6 text-center text-quiet">
                {!isLongEnough
                  ? "Type at least two characters."
                  : isFetching
                    ? "Searching…"
                    : "Nothing matches."}
              </Command.Empty>
              {entries.map(({ key, kind, name, where, icon: Icon, go }) => (
                <Command.Item
                  key={key}
                  value={key}
                  className={ITEM}
                  onSelect={() => open(() => navigate(go))}
                >
                  <Icon size={16} aria-hidden className="shrink-0 text-quiet" />
                  <span className="min-w-0 flex-1 truncate">{name}</span>
                  <span className="shrink-0 text-sm text-quiet">
                    {[kind, where].filter(Boolean).join(" · ")}
                  </span>
                </Command.Item>
              ))}
              {hits.map((hit) => (
                <Command.Item
                  key={`${hit.kind}-${hit.id}`}
                  value={`${hit.kind}-${hit.id}`}
                  className={ITEM}
                  onSelect={() => open(() => openHit(hit))}
                >
                  <SearchHit hit={hit} />
                </Command.Item>
              ))}
              {pages.map(({ label, to, icon: Icon }) => (
                <Command.Item
                  key={to}
                  value={`page-${to}`}
                  className={ITEM}
                  onSelect={() => open(() => navigate({ to }))}
                >
                  <Icon size={16} aria-hidden /> Go to {label}
                </Command.Item>
              ))}
            </Command.List>
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
