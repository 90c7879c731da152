import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ScrollText, Trash2 } from "lucide-react";
import { useState } from "react";
import { Button } from "@/components/button";
import { ConfirmDialog } from "@/components/overlays/dialog";
import { remove } from "../api/actions";
import type { TensorboardItem } from "../api/documents";
import { RowActions } from "../list/row-actions";
import { PageStartStop, RowStartStop } from "../list/start-stop";
import { describeLogs } from "./log-place";

export function TensorboardRowActions({ board }: { board: TensorboardItem }) {
  const { namespace, name } = board;
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
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
      <RowStartStop collection="tensorboards" item={board} verb="Open" />
      {deleting && <DeleteTensorboard board={board} open onClose={() => setDeleting(false)} />}
    </RowActions>
  );
}

export function TensorboardPageActions({ board }: { board: TensorboardItem }) {
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  if (board.status.phase === "terminating") return null;
  return (
    <>
      <PageStartStop collection="tensorboards" item={board} verb="Open" />
      <Button look="danger" onClick={() => setDeleting(true)}>
        <Trash2 size={15} aria-hidden /> Delete
      </Button>
      <DeleteTensorboard
        board={board}
        open={deleting}
        onClose={() => setDeleting(false)}
        onDeleted={() => navigate({ to: "/tensorboards" })}
      />
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
