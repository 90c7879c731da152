import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Time } from "@/components/format/time";
import { Section } from "@/components/page";
import type { BackendInfo, VolumeItem } from "../api/documents";
import { volumesQuery } from "../api/queries";
import { DetailsPage } from "../details/details-page";
import { Facts } from "../details/facts";
import { WithBackend } from "../list/list-page";
import { describeModes, describeSize } from "./describe-volume";
import { useRefusal, VolumePageActions } from "./volume-actions";
import { useVolumeUsers } from "./volume-users";

const route = getRouteApi("/volumes/$namespace/$name");

export function VolumePage() {
  const { name } = route.useParams();
  return <WithBackend title={name}>{(backend) => <VolumeDetails backend={backend} />}</WithBackend>;
}

function VolumeDetails({ backend }: { backend: BackendInfo }) {
  const { namespace, name } = route.useParams();
  const { tab } = route.useSearch();
  const { data: volumes } = useQuery(volumesQuery(namespace));
  const item = volumes?.find((one) => one.name === name);
  return (
    <DetailsPage
      collection="volumes"
      namespace={namespace}
      name={name}
      tab={tab}
      actions={() => item && <VolumePageActions volume={item} backend={backend} />}
      overview={() => item && <Overview item={item} backend={backend} />}
    />
  );
}

function Overview({ item, backend }: { item: VolumeItem; backend: BackendInfo }) {
  const refusal = useRefusal(item, backend);
  const cluster: [string, ReactNode][] = [
    ["Size", describeSize(item.capacity)],
    ["Storage class", item.class ?? "None"],
    ["Access", describeModes(item.modes).join(", ")],
  ];
  return (
    <Section>
      <Facts
        facts={[
          ...(backend.namespaces.length > 1
            ? [["Namespace", item.namespace] as [string, ReactNode]]
            : []),
          ...(backend.kind === "local" ? [] : cluster),
          ["Used by", <Users key="users" volume={item} />],
          ["Created", <Time key="age" at={item.age} />],
          ...(refusal ? [["Deletion", `Not possible: ${refusal}`] as [string, ReactNode]] : []),
        ]}
      />
    </Section>
  );
}

function Users({ volume }: { volume: VolumeItem }) {
  const users = useVolumeUsers(volume);
  if (users.length === 0) return "Nothing";
  return (
    <ul>
      {users.map(({ kind, name, running }) => (
        <li key={`${kind}/${name}`}>
          {kind === "notebooks" ? "Notebook " : "TensorBoard "}
          <Link
            to={`/${kind}/$namespace/$name`}
            params={{ namespace: volume.namespace, name }}
            className="text-accent underline"
          >
            {name}
          </Link>
          {running ? "" : " (stopped)"}
        </li>
      ))}
    </ul>
  );
}
