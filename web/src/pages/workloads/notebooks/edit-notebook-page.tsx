import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Page } from "@/components/page";
import { edit } from "../api/actions";
import type { BackendInfo } from "../api/documents";
import type { FormConfig } from "../api/form-config";
import { formConfigQuery, notebookQuery, type Resource } from "../api/queries";
import { WithBackend } from "../list/list-page";
import { changedFields, formBody } from "./form/form-state";
import { NotebookForm } from "./form/notebook-form";
import { readNotebook } from "./form/read-notebook";

const route = getRouteApi("/notebooks/$namespace/$name/edit");
const NO_NAMES: ReadonlySet<string> = new Set();

export function EditNotebookPage() {
  const { namespace, name } = route.useParams();
  // Read here, not below: a query tells only of fields that its own component has read.
  const { data: config, error: configError } = useQuery(formConfigQuery);
  const { data: notebook, error: notebookError } = useQuery(notebookQuery(namespace, name));
  const title = `Edit ${name}`;
  const error = configError ?? notebookError;
  return (
    <WithBackend title={title}>
      {(backend) => (
        <Page title={title} subtitle="A running notebook starts again with the changes.">
          {config && notebook ? (
            <Form backend={backend} config={config} resource={notebook} />
          ) : error ? (
            <ErrorCard error={error} />
          ) : (
            <Skeleton />
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
