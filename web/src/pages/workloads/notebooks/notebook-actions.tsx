import { useNavigate } from "@tanstack/react-router";
import { Pencil, ScrollText, Trash2 } from "lucide-react";
import { memo, useState } from "react";
import { Button } from "@/components/button";
import type { MenuItem } from "@/components/overlays/menu";
import type { NotebookItem } from "../api/documents";
import { RowActions } from "../list/row-actions";
import { PageStartStop, RowStartStop } from "../list/start-stop";
import { DeleteNotebook } from "./delete-notebook";

type Notebook = Pick<NotebookItem, "name" | "namespace" | "status" | "volumes">;

/** Kept while the list scrolls: a row that moves is not drawn again. */
export const NotebookRowActions = memo(({ notebook }: { notebook: Notebook }) => {
  const { namespace, name } = notebook;
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
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
      <RowStartStop collection="notebooks" item={notebook} verb="Connect" />
      {deleting && <DeleteNotebook notebook={notebook} open onClose={() => setDeleting(false)} />}
    </RowActions>
  );
});

/** The same actions on the notebook's own page. */
export function NotebookPageActions({ notebook }: { notebook: Notebook }) {
  const { namespace, name, status } = notebook;
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  if (status.phase === "terminating") return null;
  return (
    <>
      <PageStartStop collection="notebooks" item={notebook} verb="Connect" />
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
    </>
  );
}
