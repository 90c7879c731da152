import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { CalendarPlus } from "lucide-react";
import { ButtonLink } from "@/components/button";
import { Page } from "@/components/page";
import { SectionLinks } from "../section-links";
import { SchedulesOf } from "./schedule-table";

const route = getRouteApi("/schedules");

export function SchedulesPage() {
  const { schedule } = route.useSearch();
  const navigate = useNavigate();
  return (
    <Page
      title="Schedules"
      actions={
        <ButtonLink look="primary" to="/pipelines/start" search={{ when: "schedule" }}>
          <CalendarPlus size={15} aria-hidden /> New schedule
        </ButtonLink>
      }
    >
      <SectionLinks />
      <SchedulesOf
        selected={schedule}
        onSelect={(id) => navigate({ to: "/schedules", search: { schedule: id } })}
      />
    </Page>
  );
}
