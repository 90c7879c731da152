import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { api, type Schemas, unwrap } from "@/api/client";
import { ExternalButton } from "@/components/button";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { formatBytes } from "@/components/format/bytes";
import { RowTable } from "@/pages/run/artifacts/row-table";

const MAX_ROWS = 20;

export function usePreview(id: string) {
  return useQuery({
    queryKey: ["lineage", "preview", id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/versions/{id}/preview", { params: { path: { id } }, signal })),
    staleTime: Number.POSITIVE_INFINITY, // content never changes
  });
}

/** The start of a file's content: its rows, its text, or the image. */
export function ContentPreview({ id }: { id: string }) {
  const { data, error } = usePreview(id);
  return (
    <div className="min-w-0">
      <div className="flex items-center gap-2">
        <h3 className="flex-1 font-medium">Content</h3>
        <ExternalButton look="quiet" href={`/api/v1/versions/${encodeURIComponent(id)}/content`}>
          <Download size={15} aria-hidden /> Download
        </ExternalButton>
      </div>
      {error ? (
        <ErrorCard error={error} />
      ) : data ? (
        <Shown preview={data} />
      ) : (
        <Skeleton lines={3} />
      )}
    </div>
  );
}

function Shown({ preview }: { preview: Omit<Schemas["Preview"], "series"> }) {
  const { kind, text, columns, rows, image, truncated, size } = preview;
  const shown = kind === "table" && rows ? rows.slice(0, MAX_ROWS) : [];
  return (
    <>
      {kind === "table" && columns && rows ? (
        <div className="text-sm [&>div]:max-h-64">
          <RowTable columns={columns} rows={shown} />
        </div>
      ) : kind === "image" && image ? (
        <img
          src={`data:${preview.media_type};base64,${image}`}
          alt="The content"
          className="max-h-64 rounded border border-line"
        />
      ) : kind === "text" ? (
        <pre
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
          tabIndex={0}
          className="max-h-64 overflow-auto rounded border border-line bg-sunken p-2 text-sm"
        >
          {text}
        </pre>
      ) : (
        <p className="text-quiet">
          {kind === "empty" ? "It is empty." : `${formatBytes(size)} that are not text.`}
        </p>
      )}
      {(truncated || (rows && rows.length > MAX_ROWS)) && kind !== "binary" && (
        <p className="text-sm text-quiet">
          The beginning of {formatBytes(size)}. The download has everything.
        </p>
      )}
    </>
  );
}
