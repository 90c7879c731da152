import { useNavigate } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { useState } from "react";
import { api } from "@/api/client";
import { IconButton } from "@/components/button";
import { copyAndAnnounce } from "@/components/copy-text";
import { ConfirmDialog } from "@/components/overlays/dialog";
import { Menu } from "@/components/overlays/menu";
import { ExportMenu } from "../export-menu";
import type { Execution } from "./use-execution";

const FORMATS = [
  "bundle",
  "ro-crate",
  "prov-json",
  "prov-n",
  "dockerfile",
  "oci",
  "runner",
] as const;

/** Export in a form that other programs read, its logs in a TensorBoard, and delete. */
export function ExecutionMenu({ execution }: { execution: Execution }) {
  const [deleting, setDeleting] = useState(false);
  const navigate = useNavigate();
  const id = execution.id ?? execution.uid;
  const running = execution.state === "running";
  return (
    <>
      <ExportMenu
        path={`/api/v1/executions/${encodeURIComponent(id)}/export`}
        formats={FORMATS}
        disabled={running}
      />
      <Menu
        trigger={
          <IconButton label="More actions" className="px-1.5">
            <Ellipsis size={16} aria-hidden />
          </IconButton>
        }
        items={[
          {
            label: "Open a TensorBoard…",
            disabled: running,
            why: running ? "it runs" : undefined,
            onSelect: () => void navigate({ to: "/tensorboards/new", search: { run: id } }),
          },
          {
            label: "Copy the uid",
            onSelect: () => void copyAndAnnounce(execution.uid, "The uid"),
          },
          {
            label: "Delete…",
            danger: true,
            disabled: running,
            why: running ? "it runs" : undefined,
            onSelect: () => setDeleting(true),
          },
        ]}
      />
      <ConfirmDialog
        open={deleting}
        onClose={() => setDeleting(false)}
        title={`Delete ${id}?`}
        action="Delete the record"
        onConfirm={async () => {
          await api.POST("/api/v1/executions/remove", { body: { ids: [id], dry_run: false } });
          await navigate({ to: "/runs" });
        }}
      >
        Its record is deleted: nobody can see or repeat any more what it did. The files in your
        directories stay. The stored content that nothing else uses is freed by{" "}
        <code className="font-mono">clew gc</code>.
      </ConfirmDialog>
    </>
  );
}
