import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { CirclePause, CirclePlay, ExternalLink, Pencil, ScrollText, Trash2 } from "lucide-react";
import { memo, useState } from "react";
import { Button, ExternalButton, IconButton } from "@/components/button";
import type { MenuItem } from "@/components/menu";
import { setStopped } from "../api/actions";
import type { NotebookItem } from "../api/documents";
import { openPath } from "../common/open-path";
import { RowActions } from "../common/row-actions";
import { useFailure } from "../common/use-failure";
import { DeleteNotebook } from "./delete-notebook";

type Notebook = Pick<NotebookItem, "name" | "namespace" | "status" | "volumes">;

function useStopping({ namespace, name }: Notebook) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (stopped: boolean) => setStopped("notebooks", namespace, name, stopped),
    onSettled: () => client.invalidateQueries({ queryKey: ["workloads"] }),
  });
}

/** Kept while the list scrolls: a row that moves is not drawn again. */
export const NotebookRowActions = memo(({ notebook }: { notebook: Notebook }) => {
  const { namespace, name, status } = notebook;
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const stopping = useStopping(notebook);
  const failure = useFailure(stopping.error, () => stopping.reset());
  const isStopped = status.phase === "stopped";
  const params = { namespace, name };
  const items: MenuItem[] = [
    {
      label: "Edit",
      icon: <Pencil size={15} aria-hidden />,
      onSelect: () => navigate({ to: "/notebooks/$namespace/$name/edit", params }),
    },
    {
      label: "Logs",
      icon: <ScrollText size={15} aria-hidden />,
      onSelect: () =>
        navigate({ to: "/notebooks/$namespace/$name", params, search: { tab: "logs" } }),
    },
    {
      label: "Delete",
      icon: <Trash2 size={15} aria-hidden />,
      danger: true,
      onSelect: () => setDeleting(true),
    },
  ];
  return (
    <RowActions name={name} items={items}>
      {!isStopped && status.phase !== "terminating" && (
        <ExternalButton href={openPath("notebooks", namespace, name, status.phase)}>
          <span className="max-sm:sr-only">Connect</span>
          <ExternalLink size={14} aria-hidden />
          <span className="sr-only">to {name} in a new tab</span>
        </ExternalButton>
      )}
      {status.phase !== "terminating" && (
        <IconButton
          label={isStopped ? `Start ${name}` : `Stop ${name}`}
          className="px-1.5"
          disabled={stopping.isPending}
          onClick={() => stopping.mutate(!isStopped)}
        >
          {isStopped ? <CirclePlay size={17} aria-hidden /> : <CirclePause size={17} aria-hidden />}
        </IconButton>
      )}
      {deleting && <DeleteNotebook notebook={notebook} open onClose={() => setDeleting(false)} />}
      {failure}
    </RowActions>
  );
});

/** The same actions on the notebook's own page. */
export function NotebookPageActions({ notebook }: { notebook: Notebook }) {
  const { namespace, name, status } = notebook;
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const stopping = useStopping(notebook);
  const failure = useFailure(stopping.error, () => stopping.reset());
  const isStopped = status.phase === "stopped";
  if (status.phase === "terminating") return null;
  return (
    <>
      {!isStopped && (
        <ExternalButton look="primary" href={openPath("notebooks", namespace, name, status.phase)}>
          Connect <ExternalLink size={14} aria-hidden />
          <span className="sr-only">in a new tab</span>
        </ExternalButton>
      )}
      <Button
        look={isStopped ? "primary" : "secondary"}
        disabled={stopping.isPending}
        onClick={() => stopping.mutate(!isStopped)}
      >
        {isStopped ? <CirclePlay size={16} aria-hidden /> : <CirclePause size={16} aria-hidden />}
        {isStopped ? "Start" : "Stop"}
      </Button>
      <Button
        onClick={() =>
          navigate({ to: "/notebooks/$namespace/$name/edit", params: { namespace, name } })
        }
      >
        <Pencil size={15} aria-hidden /> Edit
      </Button>
      <Button look="danger" onClick={() => setDeleting(true)}>
        <Trash2 size={15} aria-hidden /> Delete
      </Button>
      <DeleteNotebook
        notebook={notebook}
        open={deleting}
        onClose={() => setDeleting(false)}
        onDeleted={() => navigate({ to: "/notebooks" })}
      />
      {failure}
    </>
  );
}
