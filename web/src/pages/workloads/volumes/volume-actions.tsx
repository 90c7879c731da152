import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ChartLine, ExternalLink, Trash2, X } from "lucide-react";
import { useState } from "react";
import { Button, ButtonLink, ExternalButton } from "@/components/button";
import type { MenuItem } from "@/components/overlays/menu";
import { remove } from "../api/actions";
import type { BackendInfo, VolumeItem } from "../api/documents";
import { part } from "../api/queries";
import { RowActions } from "../list/row-actions";
import { useFailure } from "../list/use-failure";
import { DeleteVolume } from "./delete-volume";
import { useVolumeUsers } from "./volume-users";

const PROJECT = "project";

/** Why a volume cannot be deleted; null: it can. */
export function useRefusal(volume: VolumeItem, backend: BackendInfo): string | null {
  const users = useVolumeUsers(volume).filter(({ running }) => running);
  if (backend.kind === "local" && volume.name === PROJECT) return "it is the project itself";
  return users.length ? `in use: ${users.map(({ name }) => name).join(", ")}` : null;
}

function useClosing(volume: VolumeItem) {
  const client = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  async function close() {
    try {
      await remove("viewers", volume.namespace, volume.name);
      await client.invalidateQueries({ queryKey: ["workloads"] });
    } catch (failure) {
      setError(failure);
    }
  }
  const isOpen = !["uninitialized", "terminating"].includes(volume.viewer.status);
  return { isOpen, close, failure: useFailure(error, () => setError(null)) };
}

/** The page that opens the file browser: it must be asked for first. */
function browsePath({ namespace, name }: VolumeItem): string {
  return `/volumes/${part(namespace)}/${part(name)}/open`;
}

export function VolumeRowActions({
  volume,
  backend,
}: {
  volume: VolumeItem;
  backend: BackendInfo;
}) {
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const refusal = useRefusal(volume, backend);
  const { isOpen, close, failure } = useClosing(volume);
  const items: MenuItem[] = [
    {
      label: "Open a TensorBoard",
      icon: <ChartLine size={15} aria-hidden />,
      onSelect: () =>
        navigate({
          to: "/tensorboards/new",
          search: { namespace: volume.namespace, volume: volume.name },
        }),
    },
    ...(isOpen
      ? [
          {
            label: "Close the file browser",
            icon: <X size={15} aria-hidden />,
            onSelect: () => void close(),
          },
        ]
      : []),
    {
      label: "Delete",
      icon: <Trash2 size={15} aria-hidden />,
      danger: true,
      disabled: refusal !== null,
      why: refusal ?? undefined,
      onSelect: () => setDeleting(true),
    },
  ];
  return (
    <RowActions name={volume.name} items={items}>
      {volume.status.phase !== "terminating" && (
        <ExternalButton href={browsePath(volume)}>
          <span className="max-sm:sr-only">Browse</span>
          <ExternalLink size={14} aria-hidden />
          <span className="sr-only">{volume.name} in a new tab</span>
        </ExternalButton>
      )}
      {deleting && <DeleteVolume volume={volume} open onClose={() => setDeleting(false)} />}
      {failure}
    </RowActions>
  );
}

export function VolumePageActions({
  volume,
  backend,
}: {
  volume: VolumeItem;
  backend: BackendInfo;
}) {
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const refusal = useRefusal(volume, backend);
  const { isOpen, close, failure } = useClosing(volume);
  if (volume.status.phase === "terminating") return null;
  return (
    <>
      <ExternalButton look="primary" href={browsePath(volume)}>
        Browse <ExternalLink size={14} aria-hidden />
        <span className="sr-only">in a new tab</span>
      </ExternalButton>
      {isOpen && <Button onClick={close}>Close the file browser</Button>}
      <ButtonLink
        to="/tensorboards/new"
        search={{ namespace: volume.namespace, volume: volume.name }}
      >
        <ChartLine size={15} aria-hidden /> Open a TensorBoard
      </ButtonLink>
      <Button
        look="danger"
        disabled={refusal !== null}
        title={refusal ? `It cannot be deleted: ${refusal}` : undefined}
        onClick={() => setDeleting(true)}
      >
        <Trash2 size={15} aria-hidden /> Delete
      </Button>
      <DeleteVolume
        volume={volume}
        open={deleting}
        onClose={() => setDeleting(false)}
        onDeleted={() => navigate({ to: "/volumes" })}
      />
      {failure}
    </>
  );
}
