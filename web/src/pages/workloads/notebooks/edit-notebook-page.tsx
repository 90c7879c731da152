import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Page } from "@/components/page";
import { edit } from "../api/actions";
import type { BackendInfo } from "../api/documents";
import type { FormConfig } from "../api/form-config";
import { formConfigQuery, notebookQuery, type Resource } from "../api/queries";
import { WithBackend } from "../common/list-page";
import { changedFields, formBody } from "./form/form-state";
import { NotebookForm } from "./form/notebook-form";
import { readNotebook } from "./form/read-notebook";

const route = getRouteApi("/notebooks/$namespace/$name/edit");
const NO_NAMES: ReadonlySet<string> = new Set();

export function EditNotebookPage() {
  const { namespace, name } = route.useParams();
  const config = useQuery(formConfigQuery);
  const notebook = useQuery(notebookQuery(namespace, name));
  const title = `Edit ${name}`;
  const error = config.error ?? notebook.error;
  return (
    <WithBackend title={title}>
      {(backend) => (
        <Page title={title} subtitle="A running notebook starts again with the changes.">
          {error ? (
            <ErrorCard error={error} />
          ) : !config.data || !notebook.data ? (
            <Skeleton />
          ) : (
            <Form backend={backend} config={config.data} resource={notebook.data} />
          )}
        </Page>
      )}
    </WithBackend>
  );
}

function Form({
  backend,
  config,
  resource,
}: {
  backend: BackendInfo;
  config: FormConfig;
  resource: Resource;
}) {
  const { namespace, name } = route.useParams();
  const navigate = useNavigate();
  const client = useQueryClient();
  // The form as it was opened: what changes meanwhile elsewhere is not undone by saving it.
  const [initial] = useState(() => readNotebook(resource, config));
  const leave = () => navigate({ to: "/notebooks/$namespace/$name", params: { namespace, name } });
  return (
    <NotebookForm
      initial={initial}
      config={config}
      backend={backend}
      namespace={namespace}
      taken={NO_NAMES}
      editing
      onCancel={leave}
      onSubmit={async (body) => {
        const changed = changedFields(formBody(initial, config), body);
        if (Object.keys(changed).length > 0) {
          await edit("notebooks", namespace, name, changed);
          await client.invalidateQueries({ queryKey: ["workloads"] });
        }
        await leave();
      }}
    />
  );
}
