import { Tabs } from "@/components/tabs";
import { LogViewer } from "../logs/log-viewer";
import { useRunSearch } from "../use-search";

const STREAMS = [
  { id: "stdout", label: "Standard output" },
  { id: "stderr", label: "Standard error" },
] as const;

/** What an execution printed, also while it runs. */
export function OutputTab({ id }: { id: string }) {
  const [search, setSearch] = useRunSearch();
  return (
    <Tabs
      label="Streams"
      selected={search.stream ?? "stdout"}
      onSelect={(stream) =>
        setSearch({ stream: stream === "stderr" ? "stderr" : undefined, line: undefined })
      }
      tabs={STREAMS.map((stream) => ({
        ...stream,
        content: (
          <LogViewer
            label={stream.label}
            base={`/api/v1/executions/${encodeURIComponent(id)}/streams/${stream.id}`}
            download={`/api/v1/versions/${encodeURIComponent(`${id}:${stream.id}`)}/content`}
            empty="Nothing was printed there, or it went straight to a file, which is among the outputs."
          />
        ),
      }))}
    />
  );
}
