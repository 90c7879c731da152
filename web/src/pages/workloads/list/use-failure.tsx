import type { ReactNode } from "react";
import { ErrorCard } from "@/components/feedback";
import { Dialog } from "@/components/overlays/dialog";

/** A dialog that says why an action failed, where there is no place for the error. */
export function useFailure(error: unknown, onClose: () => void): ReactNode {
  if (!error) return null;
  return (
    <Dialog open onClose={onClose} title="This did not work">
      <ErrorCard error={error} />
    </Dialog>
  );
}
