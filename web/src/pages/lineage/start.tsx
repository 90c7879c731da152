import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Time } from "@/components/format/time";
import { describeKind } from "@/components/kinds";
import { Page, Section } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { SearchBox } from "./search-box";

const RECENT = 10;

/** What the page shows before it has a target: a search, and what ran last. */
export function Start({ onChoose }: { onChoose: (target: string) => void }) {
  const { data, error } = useQuery({
    queryKey: ["activities", "recent", RECENT],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/activities", { params: { query: { limit: RECENT } }, signal })),
  });
  return (
    <Page title="Lineage" subtitle="Where every result came from, and what was derived from it">
      <SearchBox
        label="Search for a file, model, Pod, image, execution, run or digest"
        placeholder="A file, model, object, Pod, image, run, command, tag or digest"
        autoFocus
        onChoose={(hit) => onChoose(hit.id)}
      />
      {error ? (
        <ErrorCard error={error} />
      ) : !data ? (
        <Skeleton />
      ) : data.activities.length === 0 ? (
        <EmptyState title="Nothing was recorded yet" command="clew exec -- python train.py">
          Put <code>clew exec --</code> before a command: the files it reads and writes appear here.
        </EmptyState>
      ) : (
        <Section title="Or begin with what ran last">
          <ul className="-m-2">
            {data.activities.map((one) => {
              const { icon: Icon, label } = describeKind(one.type);
              return (
                <li key={one.uid}>
                  <button
                    type="button"
                    onClick={() => onChoose(one.id)}
                    className="flex w-full min-w-0 items-center gap-3 rounded-md px-2 py-1.5 text-left hover:bg-sunken"
                  >
                    <Icon size={16} className="shrink-0 text-quiet" aria-label={label} />
                    <code className="w-12 shrink-0">{one.id}</code>
                    <span className="min-w-0 flex-1 truncate">
                      {one.name ?? one.command.join(" ")}
                    </span>
                    <StateBadge state={one.state} />
                    <span className="hidden w-32 shrink-0 text-right text-quiet sm:inline">
                      <Time at={one.started} />
                    </span>
                  </button>
                </li>
              );
            })}
          </ul>
        </Section>
      )}
    </Page>
  );
}
