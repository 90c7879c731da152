import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { ButtonLink, IconButton } from "@/components/button";
import { type Column, DataTable } from "@/components/data-table";
import { EmptyState } from "@/components/feedback";
import { Time } from "@/components/format/time";
import { ConfirmDialog } from "@/components/overlays/dialog";
import { deleteVersion, type PipelineVersion } from "../api";

/** The versions of a pipeline, newest first. */
export function VersionTable({ pipeline }: { pipeline: Schemas["PipelineWithVersions"] }) {
  const client = useQueryClient();
  const [deleting, setDeleting] = useState<PipelineVersion | null>(null);
  const { id } = pipeline;
  const columns: Column<PipelineVersion>[] = [
    {
      id: "name",
      header: "Version",
      width: "minmax(14rem, 1.5fr)",
      cell: (row) => (
        <Link
          to="/pipelines/$id"
          params={{ id }}
          search={{ version: row.id }}
          className="font-medium hover:underline"
        >
          {row.display_name}
        </Link>
      ),
    },
    {
      id: "description",
      header: "Description",
      width: "minmax(12rem, 2fr)",
      cell: (row) => <span className="text-quiet">{row.description || "–"}</span>,
    },
    {
      id: "created",
      header: "Uploaded",
      width: "9.5rem",
      cell: (row) => <Time at={row.created} />,
    },
    {
      id: "actions",
      header: "Actions",
      width: "9rem",
      cell: (row) => (
        <span className="flex gap-1">
          <ButtonLink
            look="quiet"
            to="/pipelines/start"
            search={{ pipeline: id, version: row.id }}
            aria-label={`Run ${row.display_name}`}
          >
            Run
          </ButtonLink>
          <IconButton label={`Delete ${row.display_name}`} onClick={() => setDeleting(row)}>
            <Trash2 size={15} aria-hidden />
          </IconButton>
        </span>
      ),
    },
  ];
  if (!pipeline.all_versions.length) return <EmptyState title="All versions were deleted" />;
  return (
    <>
      <DataTable
        label="Versions"
        columns={columns}
        rows={pipeline.all_versions}
        rowKey={(row) => row.id}
      />
      <ConfirmDialog
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title={`Delete the version ${deleting?.display_name}?`}
        action="Delete the version"
        onConfirm={async () => {
          if (deleting) await deleteVersion(id, deleting.id);
          await client.invalidateQueries({ queryKey: ["catalogue"] });
        }}
      >
        Its runs stay. Schedules that use this version will fail.
      </ConfirmDialog>
    </>
  );
}
