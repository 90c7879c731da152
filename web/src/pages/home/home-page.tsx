import { Page, Section } from "@/components/page";
import { FirstSteps } from "./first-steps";

export function HomePage() {
  return (
    <Page title="Home">
      <Section title="First steps">
        <FirstSteps />
      </Section>
    </Page>
  );
}
