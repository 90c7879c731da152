import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Time } from "@/components/format/time";
import { Section } from "@/components/page";
import type { BackendInfo, NotebookItem, Workload } from "../api/documents";
import { imageLabel, SERVER_TYPES, type ServerType } from "../api/form-config";
import { notebooksQuery } from "../api/queries";
import { ProgramBanner } from "../common/program-banner";
import { DetailsPage } from "../details/details-page";
import { Facts } from "../details/facts";
import { WithBackend } from "../list/list-page";
import { describeResources, formatMinutes } from "./format-resources";
import { NotebookPageActions } from "./notebook-actions";

const route = getRouteApi("/notebooks/$namespace/$name");

export function NotebookPage() {
  const { name } = route.useParams();
  return (
    <WithBackend title={name}>{(backend) => <NotebookDetails backend={backend} />}</WithBackend>
  );
}

function NotebookDetails({ backend }: { backend: BackendInfo }) {
  const { namespace, name } = route.useParams();
  const { tab, container } = route.useSearch();
  const { data: notebooks } = useQuery(notebooksQuery(namespace));
  const item = notebooks?.find((one) => one.name === name);
  return (
    <DetailsPage
      collection="notebooks"
      namespace={namespace}
      name={name}
      tab={tab}
      container={container}
      banner={<ProgramBanner name="jupyterlab" backend={backend} />}
      actions={() => item && <NotebookPageActions notebook={item} />}
      overview={(workload) =>
        item && (
          <Section>
            <Facts facts={describe(item, workload, backend)} />
          </Section>
        )
      }
    />
  );
}

function describe(
  item: NotebookItem,
  workload: Workload,
  backend: BackendInfo,
): [string, React.ReactNode][] {
  const { namespace } = item;
  return [
    ...(backend.namespaces.length > 1 ? [["Namespace", namespace] as [string, string]] : []),
    ["Application", SERVER_TYPES[item.serverType as ServerType] ?? item.serverType],
    ["Image", imageLabel(item.image, {})],
    ...(backend.kind === "local"
      ? []
      : [["Resources", describeResources(item)] as [string, string]]),
    [
      "Volumes",
      item.volumes.length
        ? item.volumes.map((name, index) => (
            <span key={name}>
              {index > 0 && ", "}
              <Link
                to="/volumes/$namespace/$name"
                params={{ namespace, name }}
                className="text-accent underline"
              >
                {name}
              </Link>
            </span>
          ))
        : "None: what you save is lost with the notebook",
    ],
    ["Configurations", workload.applied.join(", ") || "None"],
    ["Created", <Time key="age" at={item.age} />],
    ["Last used", <Time key="used" at={item.last_activity || null} />],
    ["Stopped when idle", describeIdleTime(item, backend)],
  ];
}

function describeIdleTime({ idle_minutes: own }: NotebookItem, backend: BackendInfo): string {
  const { enabled, idle_minutes: usual } = backend.features.culling;
  const minutes = own === null ? usual : Number(own);
  if (!enabled || own === "never" || minutes === null) return "Never";
  return `After ${formatMinutes(minutes)}`;
}
