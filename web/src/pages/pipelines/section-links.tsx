import { Link } from "@tanstack/react-router";

const PAGES = [
  { to: "/pipelines", label: "Pipelines" },
  { to: "/schedules", label: "Schedules" },
  { to: "/experiments", label: "Experiments" },
] as const;

/** Links between the pages of pipelines, below their titles. */
export function SectionLinks() {
  return (
    <nav aria-label="Pipelines" className="flex gap-1 border-b border-line">
      {PAGES.map(({ to, label }) => (
        <Link
          key={to}
          to={to}
          activeOptions={{ exact: true, includeSearch: false }}
          activeProps={{ className: "border-accent text-ink" }}
          inactiveProps={{ className: "border-transparent text-quiet hover:text-ink" }}
          className="-mb-px border-b-2 px-3 py-1.5 font-medium whitespace-nowrap"
        >
          {label}
        </Link>
      ))}
    </nav>
  );
}
