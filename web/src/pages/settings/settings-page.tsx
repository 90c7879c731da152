import { getRouteApi, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Page } from "@/components/page";
import { Tabs } from "@/components/tabs";
import { About } from "./about";
import { AccessTokens } from "./access-tokens";
import { Administration } from "./administration";
import { Appearance } from "./appearance";
import { Culling } from "./culling";
import { Remotes } from "./remotes";

const route = getRouteApi("/settings/$section");

const SECTIONS: [string, string, ReactNode][] = [
  ["tokens", "Access tokens", <AccessTokens key="tokens" />],
  ["remotes", "Remotes", <Remotes key="remotes" />],
  ["culling", "Culling", <Culling key="culling" />],
  ["appearance", "Appearance", <Appearance key="appearance" />],
  ["administration", "Administration", <Administration key="administration" />],
  ["about", "About", <About key="about" />],
];

export function SettingsPage() {
  const { section } = route.useParams();
  const navigate = useNavigate();
  return (
    <Page title="Settings">
      <Tabs
        label="Settings"
        selected={section}
        onSelect={(id) => navigate({ to: "/settings/$section", params: { section: id } })}
        tabs={SECTIONS.map(([id, label, content]) => ({ id, label, content }))}
      />
    </Page>
  );
}
