import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import {
  Archive,
  CalendarClock,
  EllipsisVertical,
  Pencil,
  Play,
  Trash2,
  Upload,
} from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { ButtonLink, IconButton } from "@/components/button";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Select } from "@/components/fields/field";
import { Menu } from "@/components/overlays/menu";
import { Page } from "@/components/page";
import { Tabs } from "@/components/tabs";
import { archivePipeline, pipelineQuery, versionQuery } from "../api";
import { NewestRuns } from "../newest-runs";
import { SampleMark } from "../pipelines-page";
import { ProblemCard } from "../problem";
import { SchedulesOf } from "../schedules/schedule-table";
import { UploadDialog } from "../upload-dialog";
import { DeletePipeline, EditPipeline } from "./pipeline-dialogs";
import { PipelineGraph } from "./pipeline-graph-tab";
import { VersionTable } from "./version-table";

const route = getRouteApi("/pipelines/$id");
const SourceView = lazy(() =>
  import("./source-view").then((module) => ({ default: module.SourceView })),
);

export function PipelinePage() {
  const { id } = route.useParams();
  const search = route.useSearch();
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<"edit" | "delete" | null>(null);
  const {
    data: pipeline,
    error,
    refetch,
  } = useQuery({
    ...pipelineQuery(id),
    // What is being deleted must not be asked for again when the server reports the change.
    enabled: dialog !== "delete",
  });
  const [failure, setFailure] = useState<unknown>(null);
  const client = useQueryClient();
  const version = search.version ?? pipeline?.latest?.id;
  const compiled = useQuery({
    ...versionQuery(id, version ?? ""),
    enabled: version !== undefined,
  });
  if (error) {
    return (
      <Page title="Pipeline">
        <ErrorCard error={error} retry={refetch} />
        <Link to="/pipelines" className="text-accent hover:underline">
          All pipelines
        </Link>
      </Page>
    );
  }
  if (!pipeline) {
    return (
      <Page title="Pipeline">
        <Skeleton />
      </Page>
    );
  }
  const change = (changes: Partial<typeof search>) =>
    navigate({ to: "/pipelines/$id", params: { id }, search: { ...search, ...changes } });
  const start = { pipeline: id, version: search.version };
  async function archive(archived: boolean) {
    setFailure(null);
    try {
      await archivePipeline(id, archived);
      await client.invalidateQueries({ queryKey: ["catalogue"] });
    } catch (problem) {
      setFailure(problem);
    }
  }
  const content = (show: (spec: unknown) => React.ReactNode) =>
    compiled.error ? (
      <ErrorCard error={compiled.error} retry={compiled.refetch} />
    ) : compiled.data ? (
      show(compiled.data.spec)
    ) : version ? (
      <Skeleton lines={6} />
    ) : (
      <p>All versions were deleted. Upload one to run the pipeline again.</p>
    );
  return (
    <Page
      title={pipeline.display_name}
      subtitle={
        <span className="flex flex-wrap items-center gap-2">
          <Link to="/pipelines" className="text-accent hover:underline">
            Pipelines
          </Link>
          {pipeline.sample !== null && <SampleMark />}
          {pipeline.sample && (
            <span>
              from <code>{pipeline.sample}</code>
            </span>
          )}
          {pipeline.archived && <span>Archived: lists do not show it.</span>}
          {pipeline.description && <span>{pipeline.description}</span>}
        </span>
      }
      actions={
        <>
          <ButtonLink look="primary" to="/pipelines/start" search={start}>
            <Play size={15} aria-hidden /> Run
          </ButtonLink>
          <ButtonLink to="/pipelines/start" search={{ ...start, when: "schedule" }}>
            <CalendarClock size={15} aria-hidden /> Schedule
          </ButtonLink>
          <Menu
            trigger={
              <IconButton label="More actions">
                <EllipsisVertical size={16} aria-hidden />
              </IconButton>
            }
            items={[
              {
                label: "Upload a version",
                icon: <Upload size={15} aria-hidden />,
                onSelect: () => change({ upload: "version" }),
              },
              {
                label: "Change name and description",
                icon: <Pencil size={15} aria-hidden />,
                onSelect: () => setDialog("edit"),
              },
              {
                label: pipeline.archived ? "Take out of the archive" : "Archive",
                icon: <Archive size={15} aria-hidden />,
                onSelect: () => void archive(!pipeline.archived),
              },
              {
                label: "Delete the pipeline",
                icon: <Trash2 size={15} aria-hidden />,
                onSelect: () => setDialog("delete"),
                danger: true,
              },
            ]}
          />
        </>
      }
    >
      {failure !== null && <ErrorCard error={failure} />}
      {(pipeline.all_versions.length > 1 || search.version) && (
        <div className="flex max-w-md items-center gap-2">
          <label htmlFor="version" className="text-quiet">
            Version
          </label>
          <Select
            id="version"
            value={version}
            onChange={(event) =>
              change({ version: event.target.value, task: undefined, toggled: undefined })
            }
          >
            {pipeline.all_versions.map((one, index) => (
              <option key={one.id} value={one.id}>
                {one.display_name}
                {index === 0 ? " (newest)" : ""}
              </option>
            ))}
          </Select>
        </div>
      )}
      {compiled.data?.problem && <ProblemCard problem={compiled.data.problem} />}
      <Tabs
        label="Pipeline"
        selected={search.tab ?? "graph"}
        onSelect={(tab) => change({ tab: tab as typeof search.tab })}
        tabs={[
          {
            id: "graph",
            label: "Graph",
            content: content((spec) => (
              <PipelineGraph
                spec={spec}
                selected={search.task}
                toggled={search.toggled}
                warnings={compiled.data?.warnings ?? []}
                onChange={change}
              />
            )),
          },
          {
            id: "runs",
            label: `Runs (${pipeline.runs})`,
            content: (
              <NewestRuns
                filter={{ pipeline: id }}
                empty="This pipeline has not run yet"
                start={start}
              />
            ),
          },
          {
            id: "schedules",
            label: `Schedules (${pipeline.schedules})`,
            content: <SchedulesOf pipeline={id} />,
          },
          {
            id: "versions",
            label: `Versions (${pipeline.versions})`,
            content: <VersionTable pipeline={pipeline} />,
          },
          {
            id: "source",
            label: "Source",
            content: content((spec) => (
              <Suspense fallback={<Skeleton lines={6} />}>
                <SourceView
                  name={pipeline.name}
                  spec={spec}
                  platform={compiled.data?.platform ?? null}
                />
              </Suspense>
            )),
          },
        ]}
      />
      <UploadDialog
        open={search.upload !== undefined}
        onClose={() => change({ upload: undefined })}
        pipeline={pipeline}
      />
      <EditPipeline open={dialog === "edit"} onClose={() => setDialog(null)} pipeline={pipeline} />
      <DeletePipeline
        open={dialog === "delete"}
        onClose={() => setDialog(null)}
        pipeline={pipeline}
      />
    </Page>
  );
}
