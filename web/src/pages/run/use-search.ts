import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import type { RunSearch } from "./search";

const route = getRouteApi("/runs/$id");

/** The view in the URL, and a function that changes a part of it. */
export function useRunSearch(): [RunSearch, (change: RunSearch, replace?: boolean) => void] {
  const search = route.useSearch();
  const { id } = route.useParams();
  const navigate = useNavigate();
  const change = useCallback(
    (part: RunSearch, replace = false) =>
      void navigate({
        to: "/runs/$id",
        params: { id },
        search: (before: RunSearch) => ({ ...before, ...part }),
        replace,
        resetScroll: false,
      }),
    [navigate, id],
  );
  return [search, change];
}
