import { useNavigate } from "@tanstack/react-router";
import { Download, Ellipsis } from "lucide-react";
import { useState } from "react";
import { api } from "@/api/client";
import { Button, IconButton } from "@/components/button";
import { ConfirmDialog } from "@/components/dialog";
import { Menu } from "@/components/menu";
import type { Execution } from "./use-execution";

const EXPORTS: [label: string, format: string][] = [
  ["Bundle for another project", "bundle"],
  ["RO-Crate", "ro-crate"],
  ["W3C PROV (JSON)", "prov-json"],
  ["W3C PROV (PROV-N)", "prov-n"],
  ["Dockerfile with its files", "dockerfile"],
  ["Container image", "oci"],
  ["Program that repeats it", "runner"],
];

function download(address: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = "";
  link.click();
}

/** Export in a form that other programs read, its logs in a TensorBoard, and delete. */
export function ExecutionMenu({ execution }: { execution: Execution }) {
  const [deleting, setDeleting] = useState(false);
  const navigate = useNavigate();
  const id = execution.id ?? execution.uid;
  const running = execution.state === "running";
  return (
    <>
      <Menu
        trigger={
          <Button disabled={running}>
            <Download size={15} aria-hidden /> Export
          </Button>
        }
        items={EXPORTS.map(([label, format]) => ({
          label,
          onSelect: () =>
            download(`/api/v1/executions/${encodeURIComponent(id)}/export?format=${format}`),
        }))}
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
            onSelect: () => void navigator.clipboard.writeText(execution.uid),
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
