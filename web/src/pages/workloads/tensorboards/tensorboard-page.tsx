import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Time } from "@/components/format/time";
import { Section } from "@/components/page";
import type { BackendInfo } from "../api/documents";
import { tensorboardsQuery } from "../api/queries";
import { ProgramBanner } from "../common/program-banner";
import { DetailsPage } from "../details/details-page";
import { Facts } from "../details/facts";
import { WithBackend } from "../list/list-page";
import { describeLogs } from "./log-place";
import { TensorboardPageActions } from "./tensorboard-actions";

const route = getRouteApi("/tensorboards/$namespace/$name");

export function TensorboardPage() {
  const { name } = route.useParams();
  return (
    <WithBackend title={name}>{(backend) => <TensorboardDetails backend={backend} />}</WithBackend>
  );
}

function TensorboardDetails({ backend }: { backend: BackendInfo }) {
  const { namespace, name } = route.useParams();
  const { tab, container } = route.useSearch();
  const { data: boards } = useQuery(tensorboardsQuery(namespace));
  const item = boards?.find((one) => one.name === name);
  return (
    <DetailsPage
      collection="tensorboards"
      namespace={namespace}
      name={name}
      tab={tab}
      container={container}
      banner={<ProgramBanner name="tensorboard" backend={backend} />}
      actions={() => item && <TensorboardPageActions board={item} />}
      overview={(workload) =>
        item && (
          <Section>
            <Facts
              facts={[
                ...(backend.namespaces.length > 1
                  ? [["Namespace", namespace] as [string, string]]
                  : []),
                ["Logs in", describeLogs(item.logspath)],
                ["Configurations", workload.applied.join(", ") || "None"],
                ["Created", <Time key="age" at={item.age} />],
              ]}
            />
          </Section>
        )
      }
    />
  );
}
