import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Archive, ArchiveRestore, FolderPlus, Play } from "lucide-react";
import { type FormEvent, useState } from "react";
import { curlCommand } from "@/api/curl";
import { Button, ButtonLink, IconButton } from "@/components/button";
import { type Column, DataTable } from "@/components/data-table";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Checkbox, Field, Input } from "@/components/fields/field";
import { Time } from "@/components/format/time";
import { ConfirmDialog, Dialog } from "@/components/overlays/dialog";
import { Page } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { archiveExperiment, createExperiment, type Experiment, experimentsQuery } from "./api";
import { LastRun } from "./last-run";
import { NewestRuns } from "./newest-runs";
import { SectionLinks } from "./section-links";

const route = getRouteApi("/experiments");

export function ExperimentsPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [archiving, setArchiving] = useState<Experiment | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const { data, error, refetch } = useQuery(experimentsQuery);
  const change = (changes: Partial<typeof search>) =>
    navigate({ to: "/experiments", search: { ...search, ...changes } });
  const rows = data?.filter((one) => search.archived || !one.archived);
  async function unarchive(experiment: Experiment) {
    setFailure(null);
    try {
      await archiveExperiment(experiment.id, false);
      await client.invalidateQueries({ queryKey: ["catalogue"] });
    } catch (problem) {
      setFailure(problem);
    }
  }
  return (
    <Page
      title="Experiments"
      actions={
        <Button look="primary" onClick={() => change({ create: true })}>
          <FolderPlus size={15} aria-hidden /> New experiment
        </Button>
      }
    >
      <SectionLinks />
      {error && <ErrorCard error={error} retry={refetch} />}
      {failure !== null && <ErrorCard error={failure} />}
      {!rows && !error && <Skeleton />}
      {rows &&
        (rows.length ? (
          <DataTable
            label="Experiments"
            columns={columns((one) => (one.archived ? unarchive(one) : setArchiving(one)))}
            rows={rows}
            rowKey={(row) => row.id}
            onOpen={(row) => change({ experiment: row.id })}
          />
        ) : (
          <EmptyState
            title="There are no experiments yet"
            command={curlCommand("/apis/v2beta1/experiments", { display_name: "first" })}
          >
            An experiment is a group of runs. A run that names none belongs to Default, which is
            made when it is first needed.
          </EmptyState>
        ))}
      <Checkbox
        label="Show archived experiments"
        checked={search.archived ?? false}
        onChange={(event) => change({ archived: event.target.checked || undefined })}
      />
      <CreateDialog
        open={search.create ?? false}
        onClose={() => change({ create: undefined })}
        onMade={(id) => change({ create: undefined, experiment: id })}
      />
      {search.experiment && data && (
        <ExperimentDialog
          experiment={data.find((one) => one.id === search.experiment)}
          onClose={() => change({ experiment: undefined, marked: undefined })}
        />
      )}
      <ConfirmDialog
        open={archiving !== null}
        onClose={() => setArchiving(null)}
        title={`Archive ${archiving?.name}?`}
        action="Archive"
        onConfirm={async () => {
          if (archiving) await archiveExperiment(archiving.id, true);
          await client.invalidateQueries({ queryKey: ["catalogue"] });
        }}
      >
        Its {archiving?.runs} runs are archived, too, and its schedules are disabled. Nothing is
        deleted; you can unarchive it.
      </ConfirmDialog>
    </Page>
  );
}

function columns(onArchive: (experiment: Experiment) => void): Column<Experiment>[] {
  return [
    {
      id: "name",
      header: "Name",
      width: "minmax(12rem, 1.5fr)",
      cell: (row) => (
        <span className="flex min-w-0 items-center gap-2">
          <Link
            to="/experiments"
            search={{ experiment: row.id, archived: row.archived || undefined }}
            className="truncate font-medium hover:underline"
          >
            {row.name}
          </Link>
          {row.archived && <StateBadge state="stopped" label="archived" />}
        </span>
      ),
    },
    {
      id: "description",
      header: "Description",
      width: "minmax(12rem, 2fr)",
      cell: (row) => <span className="text-quiet">{row.description || "–"}</span>,
    },
    { id: "runs", header: "Runs", width: "5rem", align: "right", cell: (row) => row.runs },
    {
      id: "schedules",
      header: "Schedules",
      width: "7.5rem",
      align: "right",
      cell: (row) => row.schedules,
    },
    {
      id: "last",
      header: "Last run",
      width: "16rem",
      cell: (row) => <LastRun run={row.last_run} />,
    },
    { id: "created", header: "Created", width: "9.5rem", cell: (row) => <Time at={row.created} /> },
    {
      id: "actions",
      header: "Actions",
      width: "6rem",
      cell: (row) => (
        <IconButton
          label={`${row.archived ? "Unarchive" : "Archive"} ${row.name}`}
          onClick={() => onArchive(row)}
        >
          {row.archived ? (
            <ArchiveRestore size={15} aria-hidden />
          ) : (
            <Archive size={15} aria-hidden />
          )}
        </IconButton>
      ),
    },
  ];
}

function ExperimentDialog({
  experiment,
  onClose,
}: {
  experiment: Experiment | undefined;
  onClose: () => void;
}) {
  if (!experiment) {
    return (
      <Dialog open onClose={onClose} title="Experiment">
        <EmptyState title="There is no such experiment">It may have been deleted.</EmptyState>
      </Dialog>
    );
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title={experiment.name}
      description={experiment.description || undefined}
      wide
    >
      <div className="flex flex-col gap-4">
        <div className="flex flex-wrap gap-2">
          {!experiment.archived && (
            <ButtonLink look="primary" to="/pipelines/start" search={{ experiment: experiment.id }}>
              <Play size={15} aria-hidden /> Start a run in it
            </ButtonLink>
          )}
          <ButtonLink to="/runs" search={{ q: `experiment:${experiment.id}` }}>
            Open in Runs
          </ButtonLink>
        </div>
        <NewestRuns
          filter={{ experiment: experiment.id }}
          empty="This experiment has no runs yet"
        />
      </div>
    </Dialog>
  );
}

function CreateDialog({
  open,
  onClose,
  onMade,
}: {
  open: boolean;
  onClose: () => void;
  onMade: (id: string) => void;
}) {
  return (
    <Dialog open={open} onClose={onClose} title="New experiment">
      <CreateForm onClose={onClose} onMade={onMade} />
    </Dialog>
  );
}

function CreateForm({ onClose, onMade }: { onClose: () => void; onMade: (id: string) => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  async function submit(event: FormEvent) {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const made = await createExperiment(name, description);
      await client.invalidateQueries({ queryKey: ["catalogue"] });
      onMade(made.experiment_id);
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  }
  return (
    <form className="flex flex-col gap-4" onSubmit={submit}>
      <Field label="Name">
        <Input value={name} required maxLength={255} onChange={(e) => setName(e.target.value)} />
      </Field>
      <Field label="Description" hint="Optional.">
        <Input value={description} onChange={(event) => setDescription(event.target.value)} />
      </Field>
      {error !== null && <ErrorCard error={error} />}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" disabled={busy || !name.trim()}>
          Create
        </Button>
      </div>
    </form>
  );
}
