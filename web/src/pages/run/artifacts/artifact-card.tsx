import { lazy, Suspense } from "react";
import type { Schemas } from "@/api/client";
import { Skeleton } from "@/components/feedback";
import { formatBytes } from "@/components/format/bytes";
import { readConfusionMatrix, readRocCurve } from "./classification";
import { FilePreview } from "./file-preview";
import { ValueTable } from "./value-table";

const ConfusionMatrix = lazy(() =>
  import("./confusion-matrix").then((m) => ({ default: m.ConfusionMatrix })),
);
const RocCurve = lazy(() => import("./roc-curve").then((m) => ({ default: m.RocCurve })));

/** What a task made: its metrics and plots, or the file. */
export function ArtifactCard({ name, artifact }: { name: string; artifact: Schemas["Artifact"] }) {
  const metadata = artifact.metadata as Record<string, unknown>;
  const matrix = readConfusionMatrix(metadata);
  const curve = readRocCurve(metadata);
  const { confusionMatrix: _, confidenceMetrics: __, ...rest } = metadata;
  const values = matrix || curve ? rest : metadata;
  const isMarkup = artifact.type.startsWith("system.HTML");
  return (
    <section aria-label={name} className="min-w-0 rounded-lg border border-line bg-surface">
      <header className="flex flex-wrap items-baseline gap-x-3 border-b border-line px-4 py-2">
        <h3 className="font-semibold">{name}</h3>
        <span className="text-quiet">{artifact.type}</span>
        {typeof artifact.size === "number" && (
          <span className="text-quiet">{formatBytes(artifact.size)}</span>
        )}
      </header>
      <div className="flex min-w-0 flex-col gap-4 p-4">
        <Suspense fallback={<Skeleton />}>
          {(matrix || curve) && (
            <div className="grid gap-6 lg:grid-cols-2">
              {matrix && <ConfusionMatrix matrix={matrix} />}
              {curve && <RocCurve points={curve} />}
            </div>
          )}
        </Suspense>
        {Object.keys(values).length > 0 && (
          <ValueTable values={values} label={`Metadata of ${name}`} />
        )}
        {artifact.version ? (
          <FilePreview version={artifact.version} asHtml={isMarkup} />
        ) : (
          !matrix &&
          !curve &&
          !Object.keys(values).length && (
            <p className="text-quiet">
              It is not a single file. Its files are among those of the task.{" "}
              <code className="font-mono break-all">{artifact.uri}</code>
            </p>
          )
        )}
      </div>
    </section>
  );
}
