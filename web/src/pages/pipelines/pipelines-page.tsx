import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Upload } from "lucide-react";
import { useDeferredValue } from "react";
import { Button } from "@/components/button";
import { type Column, DataTable } from "@/components/data-table";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Checkbox } from "@/components/fields/field";
import { FilterInput } from "@/components/fields/filter-input";
import { Time } from "@/components/format/time";
import { Page } from "@/components/page";
import { type Pipeline, pipelinesQuery } from "./api";
import { LastRun } from "./last-run";
import { SectionLinks } from "./section-links";
import { UploadDialog } from "./upload-dialog";

const route = getRouteApi("/pipelines");

const COLUMNS: Column<Pipeline>[] = [
  {
    id: "name",
    header: "Name",
    width: "minmax(13rem, 1.6fr)",
    cell: (row) => (
      <span className="flex min-w-0 items-center gap-2">
        <Link
          to="/pipelines/$id"
          params={{ id: row.id }}
          className="truncate font-medium hover:underline"
        >
          {row.display_name}
        </Link>
        {row.sample !== null && <SampleMark />}
        {row.archived && <span className="shrink-0 text-sm text-quiet">archived</span>}
      </span>
    ),
  },
  {
    id: "description",
    header: "Description",
    width: "minmax(10rem, 2fr)",
    cell: (row) => (
      <span className="text-quiet" title={row.description}>
        {row.description || "–"}
      </span>
    ),
  },
  { id: "last", header: "Last run", width: "14rem", cell: (row) => <LastRun run={row.last_run} /> },
  { id: "runs", header: "Runs", width: "4.5rem", align: "right", cell: (row) => row.runs },
  {
    id: "schedules",
    header: "Schedules",
    width: "7.25rem",
    align: "right",
    cell: (row) => row.schedules,
  },
  {
    id: "versions",
    header: "Versions",
    width: "6.25rem",
    align: "right",
    cell: (row) => row.versions,
  },
  {
    id: "updated",
    header: "Updated",
    width: "9.5rem",
    cell: (row) => <Time at={row.latest?.created ?? row.created} />,
  },
];

export function SampleMark() {
  return (
    <span className="shrink-0 rounded bg-accent-soft px-1.5 text-sm text-accent" title="An example">
      Sample
    </span>
  );
}

export function PipelinesPage() {
  const { q, archived, upload } = route.useSearch();
  const navigate = useNavigate();
  const text = useDeferredValue(q ?? "");
  const { data, error, refetch } = useQuery({
    ...pipelinesQuery(text, archived),
    placeholderData: (before) => before,
  });
  const change = (part: { q?: string; archived?: true }) =>
    navigate({ to: "/pipelines", search: { q, archived, upload, ...part }, replace: true });
  const openUpload = () => navigate({ to: "/pipelines", search: { q, archived, upload: "new" } });
  return (
    <Page
      title="Pipelines"
      actions={
        <Button look="primary" onClick={openUpload}>
          <Upload size={15} aria-hidden /> Upload a pipeline
        </Button>
      }
    >
      <SectionLinks />
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <FilterInput
          label="Filter pipelines"
          placeholder="Filter by name or description"
          className="max-w-sm"
          value={q}
          onChange={(next) => change({ q: next })}
        />
        <Checkbox
          label="Archived"
          checked={archived ?? false}
          onChange={({ target }) => change({ archived: target.checked || undefined })}
        />
      </div>
      {error ? (
        <ErrorCard error={error} retry={refetch} />
      ) : !data ? (
        <Skeleton />
      ) : data.pipelines.length ? (
        <>
          <DataTable
            label="Pipelines"
            columns={COLUMNS}
            rows={data.pipelines}
            rowKey={(row) => row.id}
            onOpen={(row) => navigate({ to: "/pipelines/$id", params: { id: row.id } })}
          />
          {data.total > data.pipelines.length && (
            <p className="text-quiet">
              {data.pipelines.length.toLocaleString("en")} of {data.total.toLocaleString("en")}{" "}
              pipelines are shown. Filter to find others.
            </p>
          )}
        </>
      ) : text ? (
        <EmptyState title={`No pipeline has “${text}” in its name or description`} />
      ) : (
        <EmptyState
          title="There are no pipelines yet"
          command="kfp dsl compile --py pipeline.py --output pipeline.yaml"
          action={<Button onClick={openUpload}>Upload pipeline.yaml</Button>}
        >
          Compile one with the kfp SDK, then upload the file. `clew pipeline run pipeline.py` runs
          one without uploading it.
        </EmptyState>
      )}
      <UploadDialog
        open={upload !== undefined}
        onClose={() => navigate({ to: "/pipelines", search: { q, archived } })}
      />
    </Page>
  );
}
