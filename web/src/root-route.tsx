import { createRootRoute } from "@tanstack/react-router";
import { ButtonLink } from "@/components/button";
import { EmptyState } from "@/components/feedback";
import { Page } from "@/components/page";
import { Shell } from "@/layout/shell";

export const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: () => (
    <Page title="Not found">
      <EmptyState
        title="There is no such page"
        action={
          <ButtonLink look="primary" to="/">
            Go to Home
          </ButtonLink>
        }
      >
        The address may be wrong or of another version of Clew. Ctrl-K searches files, runs and
        pages.
      </EmptyState>
    </Page>
  ),
});
