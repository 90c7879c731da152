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

/** What a cluster shows on which the operator is not installed. */
export function NoFeature() {
  return (
    <EmptyState title="This cluster has none of these" command="kubectl apply -k deploy/">
      The operator of Clew, or that of Kubeflow, is not installed on it. An administrator installs
      it with this command, in the directory of Clew.
    </EmptyState>
  );
}
