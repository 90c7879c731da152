import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { ErrorCard, Skeleton } from "@/components/feedback";
import type { BackendInfo } from "../api/documents";
import { formConfigQuery, notebooksQuery } from "../api/queries";
import { suggestName } from "../common/names";
import { currentNamespace } from "../common/namespace";
import { ProgramBanner } from "../common/program-banner";
import { CreatePage, useCreation } from "../form/create-page";
import { WithBackend } from "../list/list-page";
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
  const existing = useQuery(notebooksQuery(namespace));
  return (
    <CreatePage
      title={TITLE}
      backend={backend}
      namespace={namespace}
      onNamespace={(next) =>
        navigate({ to: "/notebooks/new", search: { namespace: next }, replace: true })
      }
      existing={existing}
      banner={
        <>
          {backend.spawner_error && (
            <p role="status" className="rounded-lg border border-warning bg-warning-soft p-3">
              The administrator's defaults are not used: {backend.spawner_error}
            </p>
          )}
          <ProgramBanner name="jupyterlab" backend={backend} />
        </>
      }
    >
      {(taken) => <Form key={namespace} backend={backend} namespace={namespace} taken={taken} />}
    </CreatePage>
  );
}

function Form({
  backend,
  namespace,
  taken,
}: {
  backend: BackendInfo;
  namespace: string;
  taken: ReadonlySet<string>;
}) {
  const { submit, leave } = useCreation("notebooks", backend, namespace);
  const { data: config, error } = useQuery(formConfigQuery);
  if (!config) return error ? <ErrorCard error={error} /> : <Skeleton />;
  return (
    <NotebookForm
      initial={defaultForm(config, suggestName("notebook", taken))}
      config={config}
      backend={backend}
      namespace={namespace}
      taken={taken}
      onCancel={leave}
      onSubmit={submit}
    />
  );
}
