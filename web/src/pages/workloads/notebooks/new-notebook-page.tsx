import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Page } from "@/components/page";
import { create } from "../api/actions";
import type { BackendInfo } from "../api/documents";
import { formConfigQuery, notebooksQuery } from "../api/queries";
import { WithBackend } from "../common/list-page";
import { suggestName } from "../common/names";
import { currentNamespace, NamespaceSelect } from "../common/namespace";
import { ProgramBanner } from "../common/program-banner";
import { useRequestKey } from "../common/request-key";
import { defaultForm } from "./form/form-state";
import { NotebookForm } from "./form/notebook-form";

const TITLE = "New notebook";
const route = getRouteApi("/notebooks/new");

export function NewNotebookPage() {
  return (
    <WithBackend title={TITLE} feature="notebooks">
      {(backend) => <NewNotebook backend={backend} />}
    </WithBackend>
  );
}

function NewNotebook({ backend }: { backend: BackendInfo }) {
  const { namespace: chosen } = route.useSearch();
  const navigate = useNavigate();
  const namespace = currentNamespace(backend, chosen);
  return (
    <Page
      title={TITLE}
      actions={
        <NamespaceSelect
          backend={backend}
          chosen={namespace}
          all={false}
          onChoose={(next) =>
            navigate({ to: "/notebooks/new", search: { namespace: next }, replace: true })
          }
        />
      }
    >
      {backend.spawner_error && (
        <p role="status" className="rounded-lg border border-warning bg-warning-soft p-3">
          The administrator's defaults are not used: {backend.spawner_error}
        </p>
      )}
      <ProgramBanner name="jupyterlab" backend={backend} />
      <Form key={namespace} backend={backend} namespace={namespace} />
    </Page>
  );
}

function Form({ backend, namespace }: { backend: BackendInfo; namespace: string }) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const key = useRequestKey();
  const config = useQuery(formConfigQuery);
  const notebooks = useQuery(notebooksQuery(namespace));
  const taken = useMemo(
    () => new Set(notebooks.data?.map(({ name }) => name) ?? []),
    [notebooks.data],
  );
  const error = config.error ?? notebooks.error;
  if (error) return <ErrorCard error={error} />;
  if (!config.data || !notebooks.data) return <Skeleton />;
  return (
    <NotebookForm
      initial={defaultForm(config.data, suggestName("notebook", taken))}
      config={config.data}
      backend={backend}
      namespace={namespace}
      taken={taken}
      onCancel={() => navigate({ to: "/notebooks", search: { namespace } })}
      onSubmit={async (body) => {
        await create("notebooks", namespace, body, key);
        await client.invalidateQueries({ queryKey: ["workloads"] });
        const usual = namespace === backend.namespace ? undefined : namespace;
        await navigate({ to: "/notebooks", search: { namespace: usual } });
      }}
    />
  );
}
