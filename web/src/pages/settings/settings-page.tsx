import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { Page } from "@/components/page";
import { Tabs } from "@/components/tabs";
import { Appearance } from "./appearance";

const route = getRouteApi("/settings/$section");

export function SettingsPage() {
  const { section } = route.useParams();
  const navigate = useNavigate();
  return (
    <Page title="Settings">
      <Tabs
        label="Settings"
        selected={section}
        onSelect={(id) => navigate({ to: "/settings/$section", params: { section: id } })}
        tabs={[{ id: "appearance", label: "Appearance", content: <Appearance /> }]}
      />
    </Page>
  );
}
