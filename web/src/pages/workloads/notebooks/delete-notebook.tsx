import { useQueryClient } from "@tanstack/react-query";
import { ConfirmDialog } from "@/components/overlays/dialog";
import { remove } from "../api/actions";
import type { NotebookItem } from "../api/documents";

/** Asks before a notebook is deleted, and says what stays. */
export function DeleteNotebook({
  notebook: { namespace, name, volumes },
  open,
  onClose,
  onDeleted,
}: {
  notebook: Pick<NotebookItem, "name" | "namespace" | "volumes">;
  open: boolean;
  onClose: () => void;
  onDeleted?: () => void;
}) {
  const client = useQueryClient();
  return (
    <ConfirmDialog
      open={open}
      onClose={onClose}
      title={`Delete the notebook ${name}?`}
      action="Delete"
      onConfirm={async () => {
        await remove("notebooks", namespace, name);
        onDeleted?.();
        client.invalidateQueries({ queryKey: ["workloads"] });
      }}
    >
      <p>The notebook is stopped and deleted, with what its kernels have in memory.</p>
      {volumes.length > 0 ? (
        <p>
          {volumes.length === 1 ? "Its volume stays" : "Its volumes stay"}, with all files:{" "}
          <strong>{volumes.join(", ")}</strong>.
        </p>
      ) : (
        <p>It has no volumes: files that you saved in it are lost.</p>
      )}
    </ConfirmDialog>
  );
}
