// biome-ignore-all lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
// biome-ignore-all lint/suspicious/noArrayIndexKey: these parts have no other name, and never move
import { useQuery } from "@tanstack/react-query";
import { request } from "@/api/client";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { parseLine } from "../logs/ansi";
import { type Cell, type CellOutput, readNotebook } from "./notebook";
import { SandboxSnippet } from "./sandbox-frame";
import { TextBlock } from "./text-block";

const MAX_BYTES = 8 << 20;

/** A notebook with its outputs. Its HTML is shown in frames without scripts and network. */
export function NotebookView({ version, size }: { version: string; size: number }) {
  const content = useQuery({
    queryKey: ["version-text", version],
    queryFn: async () => {
      const path = `/api/v1/versions/${encodeURIComponent(version)}/content`;
      const response = await request(new Request(new URL(path, window.location.origin)));
      return readNotebook(await response.text());
    },
    enabled: size <= MAX_BYTES,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (size > MAX_BYTES) return <p>This notebook is too large to be shown. Download it instead.</p>;
  if (content.error) return <ErrorCard error={content.error} />;
  if (content.isPending) return <Skeleton />;
  if (!content.data) return <p>This is not a notebook of format 4. Download it to see its text.</p>;
  return (
    <div className="flex flex-col gap-3">
      {content.data.map((cell, at) => (
        <CellView key={at} cell={cell} number={at + 1} />
      ))}
    </div>
  );
}

function CellView({ cell, number }: { cell: Cell; number: number }) {
  return (
    <section aria-label={`Cell ${number}`} className="min-w-0">
      {cell.kind === "code" ? (
        <div className="flex min-w-0 gap-2">
          <span className="w-12 shrink-0 pt-2 text-right font-mono text-sm text-quiet">
            [{cell.count ?? " "}]
          </span>
          <TextBlock text={cell.source} label={`Code of cell ${number}`} />
        </div>
      ) : (
        <p className="pl-14 whitespace-pre-wrap">{cell.source}</p>
      )}
      <div className="flex flex-col gap-2 pt-1 pl-14">
        {cell.outputs.map((output, at) => (
          <Output key={at} output={output} label={`Output ${at + 1} of cell ${number}`} />
        ))}
      </div>
    </section>
  );
}

function Output({ output, label }: { output: CellOutput; label: string }) {
  if (output.kind === "image")
    return <img src={output.source} alt={label} className="max-w-full self-start bg-white" />;
  if (output.kind === "html") return <SandboxSnippet html={output.html} title={label} />;
  return (
    <pre tabIndex={0} className="max-h-96 overflow-auto font-mono text-[0.86rem]">
      {output.text.split("\n").map((line, at) => (
        <span key={at} className="block min-h-5">
          {parseLine(line).map((segment, part) => (
            <span key={part} className={segment.className}>
              {segment.text}
            </span>
          ))}
        </span>
      ))}
    </pre>
  );
}
