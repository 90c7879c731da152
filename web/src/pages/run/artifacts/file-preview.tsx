import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { lazy, type ReactNode, Suspense } from "react";
import { fetchJson, type Schemas } from "@/api/client";
import { ButtonLink } from "@/components/button";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { formatBytes } from "@/components/format/bytes";
import { RowTable } from "./row-table";
import { SandboxFrame } from "./sandbox-frame";
import { TextBlock } from "./text-block";

type Preview = Schemas["Preview"];

const NotebookView = lazy(() =>
  import("./notebook-view").then((m) => ({ default: m.NotebookView })),
);
const ParquetTable = lazy(() =>
  import("./parquet-table").then((m) => ({ default: m.ParquetTable })),
);
const ScalarsChart = lazy(() =>
  import("./scalars-chart").then((m) => ({ default: m.ScalarsChart })),
);

/** What a version of a file contains: its beginning, or a picture of it. */
export function FilePreview({ version, asHtml = false }: { version: string; asHtml?: boolean }) {
  const path = `/api/v1/versions/${encodeURIComponent(version)}`;
  const preview = useQuery({
    queryKey: ["preview", version],
    queryFn: () => fetchJson<Preview>(`${path}/preview`),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (preview.error) return <ErrorCard error={preview.error} />;
  if (!preview.data) return <Skeleton />;
  const { size, media_type: type, truncated } = preview.data;
  return (
    <div className="flex min-w-0 flex-col gap-3">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <span className="text-quiet">
          {formatBytes(size)} · {type}
        </span>
        <a
          href={`${path}/content`}
          download
          className="inline-flex items-center gap-1 font-medium text-accent"
        >
          <Download size={15} aria-hidden /> Download
        </a>
        <ButtonLink look="quiet" to="/lineage" search={{ target: version }}>
          Where does it come from?
        </ButtonLink>
      </div>
      <Suspense fallback={<Skeleton />}>
        <Content preview={preview.data} version={version} asHtml={asHtml} />
      </Suspense>
      {truncated && (
        <p className="text-quiet">
          This is only the beginning. Download the file to see all of it.
        </p>
      )}
    </div>
  );
}

function Content({
  preview,
  version,
  asHtml,
}: {
  preview: Preview;
  version: string;
  asHtml: boolean;
}): ReactNode {
  if (asHtml && preview.kind === "text")
    return <SandboxFrame version={version} title="HTML page" />;
  switch (preview.kind) {
    case "empty":
      return <p className="text-quiet">The file is empty.</p>;
    case "html":
      return <SandboxFrame version={version} title="HTML page" />;
    case "notebook":
      return <NotebookView version={version} size={preview.size} />;
    case "scalars":
      return <ScalarsChart series={(preview.series ?? {}) as Record<string, [number, number][]>} />;
    case "image":
      return preview.image ? (
        <img
          src={`data:${preview.media_type};base64,${preview.image}`}
          alt="The recorded file"
          className="max-h-[70vh] max-w-full self-start rounded border border-line bg-white object-contain"
        />
      ) : (
        <p>The image is too large to be shown here. Download it instead.</p>
      );
    case "table":
      return <RowTable columns={preview.columns ?? []} rows={preview.rows ?? []} />;
    case "binary":
      return preview.media_type.includes("parquet") ? (
        <ParquetTable version={version} size={preview.size} />
      ) : (
        <p>The file is not text, and not of a kind that is shown here. Download it instead.</p>
      );
    default:
      return <TextBlock text={formatText(preview)} label="The text of the file" />;
  }
}

/** JSON on one line is indented, if it is complete. */
function formatText({ text, media_type: type, truncated }: Preview): string {
  if (type !== "application/json" || truncated || !text) return text ?? "";
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
