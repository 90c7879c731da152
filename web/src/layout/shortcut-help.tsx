import { Dialog } from "@/components/overlays/dialog";
import { ENTRIES } from "./navigation";

const SHORTCUTS: [string, string][] = [
  ["Ctrl K or ⌘ K", "Search everything"],
  ["/", "Filter the list on the page"],
  ["j, k or arrows", "Next or previous row, or neighbour in a graph"],
  ["Enter", "Open the row"],
  ["x", "Select the row"],
  ["c", "Compare the selected rows of Runs"],
  ["Esc", "Close"],
  ["?", "This help"],
  ...ENTRIES.map(({ label, key }): [string, string] => [`g ${key}`, `Go to ${label}`]),
];

export default function ShortcutHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title="Keyboard shortcuts">
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2">
        {SHORTCUTS.map(([keys, what]) => (
          <div key={keys} className="contents">
            <dt>
              <kbd className="rounded border border-line bg-sunken px-1.5 py-0.5 font-mono text-sm">
                {keys}
              </kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
