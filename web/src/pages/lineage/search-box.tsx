import { Command } from "cmdk";
import { Search } from "lucide-react";
import { useState } from "react";
import { ErrorCard } from "@/components/feedback";
import { type Hit, SearchHit, useSearch } from "@/components/search-hit";

const MAX_HITS = 12;

/** A search for anything that was recorded. Choosing a result calls `onChoose` with its id. */
export function SearchBox({
  label,
  placeholder,
  onChoose,
  autoFocus = false,
}: {
  label: string;
  placeholder: string;
  onChoose: (hit: Hit) => void;
  autoFocus?: boolean;
}) {
  const [text, setText] = useState("");
  const { hits, error, isLongEnough, isFetching } = useSearch(text, MAX_HITS);
  const isOpen = text.trim() !== "";
  return (
    <Command
      shouldFilter={false}
      label={label}
      className="relative w-full min-w-0"
      onKeyDown={(event) => {
        if (event.key === "Escape") setText("");
      }}
    >
      <div className="flex items-center gap-2 rounded-md border border-line-strong bg-surface px-2.5 focus-within:outline-2 focus-within:outline-accent">
        <Search size={15} aria-hidden className="shrink-0 text-quiet" />
        <Command.Input
          value={text}
          onValueChange={setText}
          aria-label={label}
          placeholder={placeholder}
          autoFocus={autoFocus}
          className="min-h-8 w-full min-w-0 bg-transparent outline-none placeholder:text-quiet"
        />
      </div>
      <Command.List
        className={
          isOpen
            ? "absolute inset-x-0 top-full z-20 mt-1 max-h-[50vh] overflow-y-auto rounded-lg border border-line bg-raised p-1 shadow-xl"
            : "hidden"
        }
      >
        {isOpen && (
          <>
            {error ? <ErrorCard error={error} /> : null}
            <Command.Empty className="px-3 py-4 text-quiet">
              {!isLongEnough
                ? "Type at least two characters."
                : isFetching
                  ? "Searching…"
                  : "Nothing matches."}
            </Command.Empty>
            {hits.map((hit) => (
              <Command.Item
                key={`${hit.kind}-${hit.id}`}
                value={`${hit.kind}-${hit.id}`}
                className="flex cursor-pointer items-center gap-2 rounded-md px-2.5 py-1.5 data-[selected=true]:bg-sunken"
                onSelect={() => {
                  setText("");
                  onChoose(hit);
                }}
              >
                <SearchHit hit={hit} />
              </Command.Item>
            ))}
          </>
        )}
      </Command.List>
    </Command>
  );
}
