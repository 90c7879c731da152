import { ArrowDown, ArrowUp, X } from "lucide-react";
import { useState } from "react";
import { Button, IconButton } from "@/components/button";
import { Checkbox, Input } from "@/components/fields/field";
import { Dialog } from "@/components/overlays/dialog";
import { type Column, findColumn, PROPERTIES } from "./columns";

const MOST_SHOWN = 200;
const KINDS: [Column["kind"], string][] = [
  ["property", "Properties"],
  ["metric", "Metrics"],
  ["parameter", "Parameters"],
];

interface Props {
  chosen: string[];
  parameters: string[];
  metrics: string[];
  onChange: (columns: string[] | undefined) => void;
  onClose: () => void;
}

/** Choose the columns, and their order, from all parameters and metrics there are. */
export function ColumnPicker({ chosen, parameters, metrics, onChange, onClose }: Props) {
  const [text, setText] = useState("");
  const all = [
    ...PROPERTIES.map(({ id }) => id),
    ...metrics.map((name) => `metrics.${name}`),
    ...parameters.map((name) => `params.${name}`),
  ];
  const matching = all
    .map(findColumn)
    .filter((column) => column !== undefined)
    .filter(({ header }) => header.toLowerCase().includes(text.trim().toLowerCase()));
  function move(at: number, step: number) {
    const next = [...chosen];
    const [moved] = next.splice(at, 1);
    next.splice(at + step, 0, moved as string);
    onChange(next);
  }
  return (
    <Dialog open onClose={onClose} title="Columns" wide>
      <div className="grid gap-6 md:grid-cols-[3fr_2fr]">
        <div className="flex min-w-0 flex-col gap-3">
          <Input
            type="search"
            aria-label="Search columns"
            placeholder="Search parameters, metrics and properties"
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
          {KINDS.map(([kind, title]) => {
            const columns = matching.filter((column) => column.kind === kind);
            return columns.length ? (
              <fieldset key={kind}>
                <legend className="mb-1 font-medium text-quiet">{title}</legend>
                <div className="grid grid-cols-1 gap-x-4 sm:grid-cols-2">
                  {columns.slice(0, MOST_SHOWN).map(({ id, header }) => (
                    <div key={id} className="min-w-0 py-0.5 break-all">
                      <Checkbox
                        label={header}
                        checked={chosen.includes(id)}
                        onChange={({ target }) =>
                          onChange(
                            target.checked ? [...chosen, id] : chosen.filter((one) => one !== id),
                          )
                        }
                      />
                    </div>
                  ))}
                </div>
                {columns.length > MOST_SHOWN && (
                  <p className="text-quiet">
                    {columns.length - MOST_SHOWN} more: search for a part of their names.
                  </p>
                )}
              </fieldset>
            ) : null;
          })}
          {matching.length === 0 && <p className="text-quiet">Nothing has such a name.</p>}
        </div>
        <div className="min-w-0">
          <div className="mb-1 flex items-center gap-2">
            <h3 className="flex-1 font-medium text-quiet">Shown, from left to right</h3>
            <Button look="quiet" className="min-h-7 px-2" onClick={() => onChange(undefined)}>
              Reset
            </Button>
          </div>
          <ol className="flex flex-col">
            {chosen.map((id, at) => {
              const header = findColumn(id)?.header ?? id;
              return (
                <li key={id} className="flex items-center gap-1 border-b border-line">
                  <span className="min-w-0 flex-1 truncate" title={id}>
                    {header}
                  </span>
                  <IconButton
                    label={`Move ${header} to the left`}
                    className="px-1.5"
                    disabled={at === 0}
                    onClick={() => move(at, -1)}
                  >
                    <ArrowUp size={15} aria-hidden />
                  </IconButton>
                  <IconButton
                    label={`Move ${header} to the right`}
                    className="px-1.5"
                    disabled={at === chosen.length - 1}
                    onClick={() => move(at, 1)}
                  >
                    <ArrowDown size={15} aria-hidden />
                  </IconButton>
                  <IconButton
                    label={`Hide ${header}`}
                    className="px-1.5"
                    onClick={() => onChange(chosen.filter((one) => one !== id))}
                  >
                    <X size={15} aria-hidden />
                  </IconButton>
                </li>
              );
            })}
          </ol>
        </div>
      </div>
    </Dialog>
  );
}
