import { lazy, Suspense } from "react";
import { ButtonLink } from "@/components/button";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Field, Select } from "@/components/fields/field";
import { formatBytes } from "@/components/format/bytes";
import { Time } from "@/components/format/time";
import { Dialog } from "@/components/overlays/dialog";
import type { Box } from "../graph-model";
import { usePreview } from "./content-preview";
import { useVersions } from "./version-list";

const TextDifference = lazy(() => import("./text-difference"));

/** What differs between a version of a file and another one. */
export function CompareDialog({
  box,
  other,
  onChoose,
  onClose,
}: {
  box: Box;
  other: string | undefined;
  onChoose: (version: string) => void;
  onClose: () => void;
}) {
  const { data, error } = useVersions(box.node?.locator ?? "");
  const others = (data ?? []).filter(({ version }) => version !== box.id);
  const isNew = (digest: string | null) => digest !== box.node?.digest;
  const chosen =
    others.find(({ version }) => version === other) ??
    others.find(({ digest }) => isNew(digest)) ??
    others[0];
  const mine = data?.find(({ version }) => version === box.id);
  return (
    <Dialog open onClose={onClose} title={`What differs: ${box.title}`} wide>
      {error ? (
        <ErrorCard error={error} />
      ) : !data ? (
        <Skeleton />
      ) : !chosen || !mine ? (
        <EmptyState title="There is no other version of this file">
          Record another execution that reads or writes it.
        </EmptyState>
      ) : (
        <div className="flex flex-col gap-4">
          <Field label="Compare with">
            <Select value={chosen.version} onChange={(event) => onChoose(event.target.value)}>
              {others.map((one) => (
                <option key={one.version} value={one.version}>
                  {one.execution}@{one.ordinal}, {one.found ? "found" : "made"}{" "}
                  {new Date(one.at).toLocaleString()}
                  {isNew(one.digest) ? "" : " (same content)"}
                </option>
              ))}
            </Select>
          </Field>
          <table className="w-full text-left">
            <thead>
              <tr className="border-b border-line">
                <th scope="col" className="py-1 font-medium">
                  <span className="sr-only">Property</span>
                </th>
                <th scope="col" className="font-medium">
                  {chosen.execution}@{chosen.ordinal}
                </th>
                <th scope="col" className="font-medium">
                  {mine.execution}@{mine.ordinal}, this one
                </th>
              </tr>
            </thead>
            <tbody>
              <tr>
                <th scope="row" className="py-1 font-normal text-quiet">
                  Time
                </th>
                <td>
                  <Time at={chosen.at} />
                </td>
                <td>
                  <Time at={mine.at} />
                </td>
              </tr>
              <tr>
                <th scope="row" className="py-1 font-normal text-quiet">
                  Size
                </th>
                <td>{chosen.size === null ? "unknown" : formatBytes(chosen.size)}</td>
                <td>{mine.size === null ? "unknown" : formatBytes(mine.size)}</td>
              </tr>
              <tr>
                <th scope="row" className="py-1 font-normal text-quiet">
                  Content
                </th>
                <td colSpan={2}>{isNew(chosen.digest) ? "different" : "identical"}</td>
              </tr>
            </tbody>
          </table>
          {isNew(chosen.digest) && chosen.stored && mine.stored && (
            <Contents a={chosen.version} b={mine.version} />
          )}
          {chosen.execution !== mine.execution && (
            <div>
              <ButtonLink to="/compare" search={{ id: [chosen.execution, mine.execution] }}>
                Compare the executions {chosen.execution} and {mine.execution}
              </ButtonLink>
            </div>
          )}
        </div>
      )}
    </Dialog>
  );
}

function Contents({ a, b }: { a: string; b: string }) {
  const [before, after] = [usePreview(a), usePreview(b)];
  const error = before.error ?? after.error;
  if (error) return <ErrorCard error={error} />;
  if (!before.data || !after.data) return <Skeleton />;
  if (before.data.text == null || after.data.text == null)
    return <p className="text-quiet">The contents are not text, so no lines are compared.</p>;
  return (
    <Suspense fallback={<Skeleton />}>
      <TextDifference before={before.data.text} after={after.data.text} />
      {(before.data.truncated || after.data.truncated) && (
        <p className="text-sm text-quiet">Only the beginnings are compared.</p>
      )}
    </Suspense>
  );
}
