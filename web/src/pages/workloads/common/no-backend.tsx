import { EmptyState } from "@/components/feedback";

/** What a server shows that runs no notebooks. */
export function NoBackend() {
  return (
    <EmptyState title="This server runs no notebooks, TensorBoards or volumes" command="clew up">
      Start it with this command on your machine, or with <code>clew server --on-cluster</code> on a
      cluster.
    </EmptyState>
  );
}
