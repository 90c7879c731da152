import { createRootRoute, Link } from "@tanstack/react-router";
import { EmptyState } from "@/components/feedback";
import { Page } from "@/components/page";
import { Shell } from "@/layout/shell";

export const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: () => (
    <Page title="Not found">
      <EmptyState title="There is no such page" action={<Link to="/">Go to Home</Link>} />
    </Page>
  ),
});
