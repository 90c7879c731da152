import { type UseQueryResult, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Field, Input } from "@/components/fields/field";
import { Page } from "@/components/page";
import { create } from "../api/actions";
import type { BackendInfo } from "../api/documents";
import { NamespaceSelect } from "../common/namespace";
import { useRequestKey } from "./request-key";

/** The page of a form that creates something, once it is known which names are taken. */
export function CreatePage({
  title,
  backend,
  namespace,
  onNamespace,
  existing,
  banner,
  children,
}: {
  title: string;
  backend: BackendInfo;
  namespace: string;
  onNamespace: (namespace: string | undefined) => void;
  /** What exists in the namespace. */
  existing: UseQueryResult<{ name: string }[]>;
  banner?: ReactNode;
  children: (taken: ReadonlySet<string>) => ReactNode;
}) {
  const { data, error } = existing;
  const taken = useMemo(() => new Set(data?.map(({ name }) => name)), [data]);
  return (
    <Page
      title={title}
      actions={
        <NamespaceSelect backend={backend} chosen={namespace} all={false} onChoose={onNamespace} />
      }
    >
      {banner}
      {/* An error while the form is filled in must not take away what was typed. */}
      {data ? children(taken) : error ? <ErrorCard error={error} /> : <Skeleton />}
    </Page>
  );
}

/** Creates something once, however often it is asked for, and leads to the list of its kind. */
export function useCreation(
  collection: "notebooks" | "tensorboards" | "volumes",
  backend: BackendInfo,
  namespace: string,
): { submit: (body: object) => Promise<void>; leave: () => Promise<void> } {
  const navigate = useNavigate();
  const client = useQueryClient();
  const key = useRequestKey();
  const usual = namespace === backend.namespace ? undefined : namespace;
  const leave = () => navigate({ to: `/${collection}`, search: { namespace: usual } });
  async function submit(body: object) {
    await create(collection, namespace, body, key);
    await client.invalidateQueries({ queryKey: ["workloads"] });
    await leave();
  }
  return { submit, leave };
}

/**
 * The names that were taken when the form was opened: a request whose response was lost may have
 * taken the name of the form since.
 */
export function useOpenedWith(taken: ReadonlySet<string>): ReadonlySet<string> {
  return useState(taken)[0];
}

export function NameField({
  name,
  error,
  onChange,
}: {
  name: string;
  error?: string;
  onChange: (name: string) => void;
}) {
  return (
    <Field label="Name" error={error}>
      <Input
        value={name}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
      />
    </Field>
  );
}
