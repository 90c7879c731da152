import { useQueryClient } from "@tanstack/react-query";
import { ConfirmDialog } from "@/components/overlays/dialog";
import { remove } from "../api/actions";
import type { VolumeItem } from "../api/documents";
import { useVolumeUsers } from "./volume-users";

/** Asks for the name before a volume is deleted: its files are lost. */
export function DeleteVolume({
  volume,
  open,
  onClose,
  onDeleted,
}: {
  volume: VolumeItem;
  open: boolean;
  onClose: () => void;
  onDeleted?: () => void;
}) {
  const { namespace, name } = volume;
  const client = useQueryClient();
  const users = useVolumeUsers(volume);
  return (
    <ConfirmDialog
      open={open}
      onClose={onClose}
      title={`Delete the volume ${name}?`}
      action="Delete"
      typed={name}
      onConfirm={async () => {
        await remove("volumes", namespace, name);
        onDeleted?.();
        client.invalidateQueries({ queryKey: ["workloads"] });
      }}
    >
      <p>
        The volume is deleted <strong>with all files in it</strong>. They cannot be restored.
      </p>
      {users.length > 0 && (
        <p>
          {users.map((user) => user.name).join(", ")} {users.length === 1 ? "uses" : "use"} it, and
          cannot be started without it.
        </p>
      )}
    </ConfirmDialog>
  );
}
