import type { BackendInfo } from "../api/documents";

export const ALL = "*";

/** The namespaces that a page shows, for the one in its address. */
export function shownNamespaces(backend: BackendInfo, chosen: string | undefined): string[] {
  if (chosen === ALL) return backend.namespaces;
  return [currentNamespace(backend, chosen)].filter(Boolean);
}

/** The namespace in which something is created. */
export function currentNamespace(backend: BackendInfo, chosen: string | undefined): string {
  if (chosen && chosen !== ALL) return chosen;
  return backend.namespace ?? backend.namespaces[0] ?? "";
}

/** Chooses a namespace; nothing where there is only one. */
export function NamespaceSelect({
  backend,
  chosen,
  all = true,
  onChoose,
}: {
  backend: BackendInfo;
  chosen: string | undefined;
  /** Whether all can be shown together. */
  all?: boolean;
  onChoose: (namespace: string | undefined) => void;
}) {
  if (backend.namespaces.length < 2) return null;
  const value = chosen === ALL ? ALL : currentNamespace(backend, chosen);
  const names = backend.namespaces.includes(value) || value === ALL ? [] : [value];
  return (
    <label className="inline-flex items-center gap-2">
      <span className="text-quiet">Namespace</span>
      <select
        className="min-h-8 max-w-56 rounded-md border border-line-strong bg-surface px-2"
        value={value}
        onChange={(event) =>
          onChoose(event.target.value === backend.namespace ? undefined : event.target.value)
        }
      >
        {all && <option value={ALL}>All</option>}
        {[...names, ...backend.namespaces].map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
