import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import type { ListSearch } from "./search";

/** Changes parts of the state in the address of a list, without a new entry in the history. */
export function useSearchChange(
  to: "/notebooks" | "/tensorboards" | "/volumes",
): (part: Partial<ListSearch>) => void {
  const navigate = useNavigate();
  return useCallback(
    (part) => {
      navigate({ to, search: (before) => ({ ...before, ...part }), replace: true });
    },
    [navigate, to],
  );
}
