import { useNavigate } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { useState } from "react";
import { IconButton } from "@/components/button";
import { copyAndAnnounce } from "@/components/copy-text";
import { Menu, type MenuItem } from "@/components/overlays/menu";
import { archiveRuns, isExecution } from "../actions/bulk-actions";
import { NoteDialog, RemoveDialog, TagDialog } from "../actions/bulk-dialogs";
import { useRefetchActivities } from "../actions/selection-bar";
import type { Activity } from "../use-activities";

/** The actions of one row. */
export function RowMenu({
  activity,
  onError,
}: {
  activity: Activity;
  onError: (error: unknown) => void;
}) {
  const { id, type, of, archived } = activity;
  const navigate = useNavigate();
  const refetch = useRefetchActivities();
  const [dialog, setDialog] = useState<"tag" | "note" | "remove" | null>(null);
  const close = () => setDialog(null);
  const items: MenuItem[] = [
    { label: "Open", onSelect: () => navigate({ to: "/runs/$id", params: { id } }) },
    { label: "Show lineage", onSelect: () => navigate({ to: "/lineage", search: { target: id } }) },
    { label: "Copy id", onSelect: () => void copyAndAnnounce(id, "The id") },
  ];
  if (of) {
    items.push({
      label: `Compare with ${of}`,
      onSelect: () => navigate({ to: "/compare", search: { id: [of, id] } }),
    });
  }
  if (isExecution(id) || type === "run") {
    items.push(
      { label: "Tag…", onSelect: () => setDialog("tag") },
      { label: "Note…", onSelect: () => setDialog("note") },
    );
  }
  if (isExecution(id)) {
    items.push({ label: "Delete…", onSelect: () => setDialog("remove"), danger: true });
  }
  if (type === "run") {
    items.push({
      label: "Start another one like it",
      onSelect: () => navigate({ to: "/pipelines/start", search: { from: id } }),
    });
    items.push({
      label: archived ? "Take out of the archive" : "Archive",
      onSelect: async () => {
        const [failure] = await archiveRuns([id], !archived);
        onError(failure?.error ?? null);
        refetch();
      },
    });
  }
  return (
    <>
      <Menu
        trigger={
          <IconButton label={`Actions of ${id}`} className="px-1.5">
            <Ellipsis size={16} aria-hidden />
          </IconButton>
        }
        items={items}
      />
      {dialog === "tag" && <TagDialog ids={[id]} onClose={close} />}
      {dialog === "note" && <NoteDialog ids={[id]} onClose={close} />}
      {dialog === "remove" && <RemoveDialog ids={[id]} onClose={close} onDone={close} />}
    </>
  );
}
