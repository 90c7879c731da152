import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";

export interface Tab {
  id: string;
  label: string;
  content: ReactNode;
}

/** Tabs whose selection the caller keeps, in the URL. An unknown one selects the first. */
export function Tabs({
  tabs,
  selected,
  onSelect,
  label,
}: {
  tabs: Tab[];
  selected: string;
  onSelect: (id: string) => void;
  label: string;
}) {
  const shown = tabs.some(({ id }) => id === selected) ? selected : tabs[0]?.id;
  return (
    <Radix.Root value={shown} onValueChange={onSelect} className="flex min-w-0 flex-col gap-4">
      <Radix.List
        aria-label={label}
        className="flex max-w-full gap-1 overflow-x-auto border-b border-line"
      >
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.id}
            value={tab.id}
            className="-mb-px border-b-2 border-transparent px-3 py-1.5 font-medium whitespace-nowrap text-quiet hover:text-ink data-[state=active]:border-accent data-[state=active]:text-ink"
          >
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.id} value={tab.id} className="min-w-0">
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
