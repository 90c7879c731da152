import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { CirclePause, CirclePlay, ExternalLink, ScrollText, Trash2 } from "lucide-react";
import { useState } from "react";
import { Button, ExternalButton, IconButton } from "@/components/button";
import { ConfirmDialog } from "@/components/dialog";
import { remove, setStopped } from "../api/actions";
import type { TensorboardItem } from "../api/documents";
import { openPath } from "../common/open-path";
import { RowActions } from "../common/row-actions";
import { useFailure } from "../common/use-failure";
import { describeLogs } from "./log-place";

function useStopping({ namespace, name }: TensorboardItem) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (stopped: boolean) => setStopped("tensorboards", namespace, name, stopped),
    onSettled: () => client.invalidateQueries({ queryKey: ["workloads"] }),
  });
}

export function TensorboardRowActions({ board }: { board: TensorboardItem }) {
  const { namespace, name, status } = board;
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const stopping = useStopping(board);
  const failure = useFailure(stopping.error, () => stopping.reset());
  const isStopped = status.phase === "stopped";
  return (
    <RowActions
      name={name}
      items={[
        {
          label: "Logs",
          icon: <ScrollText size={15} aria-hidden />,
          onSelect: () =>
            navigate({
              to: "/tensorboards/$namespace/$name",
              params: { namespace, name },
              search: { tab: "logs" },
            }),
        },
        {
          label: "Delete",
          icon: <Trash2 size={15} aria-hidden />,
          danger: true,
          onSelect: () => setDeleting(true),
        },
      ]}
    >
      {!isStopped && status.phase !== "terminating" && (
        <ExternalButton href={openPath("tensorboards", namespace, name, status.phase)}>
          <span className="max-sm:sr-only">Open</span>
          <ExternalLink size={14} aria-hidden />
          <span className="sr-only">{name} in a new tab</span>
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
      {deleting && <DeleteTensorboard board={board} open onClose={() => setDeleting(false)} />}
      {failure}
    </RowActions>
  );
}

export function TensorboardPageActions({ board }: { board: TensorboardItem }) {
  const { namespace, name, status } = board;
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const stopping = useStopping(board);
  const failure = useFailure(stopping.error, () => stopping.reset());
  const isStopped = status.phase === "stopped";
  if (status.phase === "terminating") return null;
  return (
    <>
      {!isStopped && (
        <ExternalButton
          look="primary"
          href={openPath("tensorboards", namespace, name, status.phase)}
        >
          Open <ExternalLink size={14} aria-hidden />
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
      <Button look="danger" onClick={() => setDeleting(true)}>
        <Trash2 size={15} aria-hidden /> Delete
      </Button>
      <DeleteTensorboard
        board={board}
        open={deleting}
        onClose={() => setDeleting(false)}
        onDeleted={() => navigate({ to: "/tensorboards" })}
      />
      {failure}
    </>
  );
}

function DeleteTensorboard({
  board: { namespace, name, logspath },
  open,
  onClose,
  onDeleted,
}: {
  board: TensorboardItem;
  open: boolean;
  onClose: () => void;
  onDeleted?: () => void;
}) {
  const client = useQueryClient();
  return (
    <ConfirmDialog
      open={open}
      onClose={onClose}
      title={`Delete the TensorBoard ${name}?`}
      action="Delete"
      onConfirm={async () => {
        await remove("tensorboards", namespace, name);
        onDeleted?.();
        client.invalidateQueries({ queryKey: ["workloads"] });
      }}
    >
      <p>
        The TensorBoard is deleted. Its logs stay: <strong>{describeLogs(logspath)}</strong>.
      </p>
    </ConfirmDialog>
  );
}
