import { CircleHelp, Columns3, Search, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Button, IconButton } from "@/components/button";
import { CopyLink } from "@/components/copy-link";
import { Checkbox, Input, Select } from "@/components/fields/field";
import { QueryHelp } from "./query-help";
import { isFiltered, type RunsSearch, STATES, TYPES, toggle } from "./search";

const TYPING_MILLISECONDS = 300;
const GROUPS: [string, string][] = [
  ["experiment", "experiment"],
  ["tag", "tag"],
  ["git", "Git commit"],
  ["name", "name"],
  ["state", "state"],
  ["kind", "kind"],
  ["agent", "user"],
];
/** States that mean the same to the user have one button. */
const STATE_CHIPS: [string, RunsSearch["state"] & {}][] = [
  ["Active", ["pending", "running"]],
  ["Succeeded", ["done", "succeeded"]],
  ["Failed", ["failed", "broken"]],
  ["Canceled", ["canceled"]],
];
const TYPE_NAMES = { execution: "Executions", run: "Pipeline runs", task: "Tasks of pipelines" };

interface Props {
  search: RunsSearch;
  parameters: string[];
  onChange: (change: Partial<RunsSearch>) => void;
  onColumns: () => void;
  expand: { all: () => void; none: () => void } | null;
}

/** What the table shows: the query, the states, types and tags, the grouping, and the columns. */
export function FilterBar({ search, parameters, onChange, onColumns, expand }: Props) {
  const [helping, setHelping] = useState(false);
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-2">
        <QueryInput query={search.q ?? ""} onChange={(q) => onChange({ q: q || undefined })} />
        <IconButton label="How to filter" onClick={() => setHelping(true)} className="px-2">
          <CircleHelp size={17} aria-hidden />
        </IconButton>
        <span className="contents">
          <Select
            aria-label="Type"
            className="w-auto max-w-40"
            value={search.type?.[0] ?? ""}
            onChange={({ target }) => {
              const type = TYPES.find((one) => one === target.value);
              onChange({ type: type && [type] });
            }}
          >
            <option value="">All types</option>
            {TYPES.map((type) => (
              <option key={type} value={type}>
                {TYPE_NAMES[type]}
              </option>
            ))}
          </Select>
          <Select
            aria-label="Group by"
            className="w-auto max-w-40"
            value={search.group ?? ""}
            onChange={({ target }) =>
              onChange({ group: target.value || undefined, open: undefined })
            }
          >
            <option value="">No groups</option>
            {GROUPS.map(([id, label]) => (
              <option key={id} value={id}>
                By {label}
              </option>
            ))}
            <optgroup label="Parameters">
              {parameters.map((name) => (
                <option key={name} value={`params.${name}`}>
                  By {name}
                </option>
              ))}
            </optgroup>
          </Select>
          <Button onClick={onColumns}>
            <Columns3 size={15} aria-hidden /> Columns
          </Button>
          <CopyLink />
        </span>
      </div>
      <div className="flex flex-wrap items-center gap-1.5">
        {STATE_CHIPS.map(([label, states]) => {
          const on = states.some((state) => search.state?.includes(state));
          const others = search.state?.filter((state) => !states.includes(state)) ?? [];
          const next = STATES.filter((state) =>
            (on ? others : [...others, ...states]).includes(state),
          );
          return (
            <Button
              key={label}
              look="quiet"
              aria-pressed={on}
              className={`min-h-7 border px-2.5 ${on ? "border-accent bg-accent-soft text-accent" : "border-line text-quiet"}`}
              onClick={() => onChange({ state: next.length ? next : undefined })}
            >
              {label}
            </Button>
          );
        })}
        {search.tag?.map((tag) => (
          <Button
            key={tag}
            look="quiet"
            aria-label={`Do not filter by the tag ${tag}`}
            className="min-h-7 border border-accent bg-accent-soft px-2.5 text-accent"
            onClick={() => onChange({ tag: toggle(search.tag, tag) })}
          >
            tag: {tag} <X size={13} aria-hidden />
          </Button>
        ))}
        <span className="ml-1">
          <Checkbox
            label="Archived"
            checked={search.archived ?? false}
            onChange={({ target }) => onChange({ archived: target.checked || undefined })}
          />
        </span>
        {isFiltered(search) && (
          <Button
            look="quiet"
            className="min-h-7 px-2.5 text-quiet"
            onClick={() =>
              onChange({
                q: undefined,
                state: undefined,
                type: undefined,
                tag: undefined,
                archived: undefined,
              })
            }
          >
            Clear filters
          </Button>
        )}
        {expand && (
          <span className="ml-auto flex gap-1">
            <Button look="quiet" className="min-h-7 px-2.5" onClick={expand.all}>
              Expand all
            </Button>
            <Button look="quiet" className="min-h-7 px-2.5" onClick={expand.none}>
              Collapse all
            </Button>
          </span>
        )}
      </div>
      {helping && <QueryHelp onClose={() => setHelping(false)} />}
    </div>
  );
}

/** The filter applies a moment after the last key, or at once with Enter. */
function QueryInput({ query, onChange }: { query: string; onChange: (query: string) => void }) {
  const [text, setText] = useState(query);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const sent = useRef(query);
  useEffect(() => {
    if (query !== sent.current) setText(query); // it came from elsewhere: a link, a button
    sent.current = query;
  }, [query]);
  useEffect(() => () => clearTimeout(timer.current), []);
  function send(next: string) {
    clearTimeout(timer.current);
    sent.current = next.trim();
    onChange(next.trim());
  }
  return (
    <div className="relative min-w-56 flex-1 basis-72">
      <Search
        size={15}
        aria-hidden
        className="pointer-events-none absolute top-1/2 left-2.5 -translate-y-1/2 text-quiet"
      />
      <Input
        data-filter
        type="search"
        aria-label="Filter"
        placeholder="Filter: words, state:failed, tag:best, metrics.accuracy > 0.9"
        className="pl-8 font-mono"
        spellCheck={false}
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => send(target.value), TYPING_MILLISECONDS);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") send(text);
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
    </div>
  );
}
