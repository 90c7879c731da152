import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { useState } from "react";
import { fetchJson, sendJson } from "@/api/client";
import { IconButton } from "@/components/button";
import { copyAndAnnounce } from "@/components/copy-text";
import { ConfirmDialog } from "@/components/overlays/dialog";
import { Menu } from "@/components/overlays/menu";
import { isActive, type Run } from "./use-run";

/** Its logs in a TensorBoard; archive and delete, as Kubeflow does it. */
export function RunMenu({ run, onError }: { run: Run; onError: (error: unknown) => void }) {
  const [deleting, setDeleting] = useState(false);
  const client = useQueryClient();
  const navigate = useNavigate();
  const requested = run.experiment !== null;
  const why = requested ? undefined : "started by the command line";
  return (
    <>
      <Menu
        trigger={
          <IconButton label="More actions" className="px-1.5">
            <Ellipsis size={16} aria-hidden />
          </IconButton>
        }
        items={[
          {
            label: "Open a TensorBoard…",
            onSelect: () =>
              void navigate({ to: "/tensorboards/new", search: { run: run.id ?? run.uid } }),
          },
          { label: "Copy the uid", onSelect: () => void copyAndAnnounce(run.uid, "The uid") },
          {
            label: "Archive",
            disabled: !requested || isActive(run),
            why,
            onSelect: async () => {
              try {
                await sendJson("POST", `/apis/v2beta1/runs/${run.uid}:archive`);
                await client.invalidateQueries({ queryKey: ["runs"] });
              } catch (error) {
                onError(error);
              }
            },
          },
          {
            label: "Delete…",
            danger: true,
            disabled: !requested,
            why,
            onSelect: () => setDeleting(true),
          },
        ]}
      />
      <ConfirmDialog
        open={deleting}
        onClose={() => setDeleting(false)}
        title={`Delete ${run.name ?? run.uid}?`}
        action="Delete the run"
        onConfirm={async () => {
          await fetchJson(`/apis/v2beta1/runs/${run.uid}`, { method: "DELETE" });
          await navigate({ to: "/runs" });
        }}
      >
        The request for it is deleted, and if it runs, it is ended. The record of what its tasks did
        stays, for lineage.
      </ConfirmDialog>
    </>
  );
}
