import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { Dialog } from "radix-ui";
import { useDeferredValue, useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { ENTRIES } from "./navigation";

const MAX_HITS = 20;
const ITEM =
  "flex cursor-pointer items-center gap-2 rounded-md px-3 py-2 data-[selected=true]:bg-sunken";

/** Search over pages, files, executions, runs and processes. */
export default function CommandPalette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const query = useDeferredValue(text.trim());
  const navigate = useNavigate();
  const { data } = useQuery({
    queryKey: ["executions", "search", query],
    queryFn: () =>
      unwrap(api.GET("/api/v1/search", { params: { query: { q: query, limit: MAX_HITS } } })),
    enabled: query.length > 1,
    placeholderData: (previous) => previous,
  });
  function open(action: () => void) {
    onClose();
    action();
  }
  /** Executions and runs have a page of their own; of everything else the lineage is shown. */
  function openHit(hit: Schemas["Hit"]) {
    if (hit.kind === "execution" || hit.kind === "run") {
      navigate({ to: "/runs/$id", params: { id: hit.id } });
    } else navigate({ to: "/lineage", search: { target: hit.id } });
  }
  const pages = ENTRIES.filter(({ label }) => label.toLowerCase().includes(query.toLowerCase()));
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
                {query.length > 1 ? "Nothing matches." : "Type at least two characters."}
              </Command.Empty>
              {(data?.hits ?? []).map((hit) => (
                <Command.Item
                  key={`${hit.kind}-${hit.id}`}
                  value={`${hit.kind}-${hit.id}`}
                  className={ITEM}
                  onSelect={() => open(() => openHit(hit))}
                >
                  <span className="w-20 shrink-0 text-quiet">{hit.kind}</span>
                  <span className="min-w-0 flex-1 truncate">{hit.label}</span>
                  <code className="text-sm text-quiet">{hit.id}</code>
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
