import { Section } from "@/components/page";
import { Warnings } from "../problem";
import { artifactType, parts, TYPE_NAMES, textOf } from "../spec/ir";
import { readParameters, toText } from "../spec/parameters";

/** The inputs and outputs of a pipeline; shown while no task is selected. */
export function PipelineSummary({
  spec,
  count,
  warnings,
}: {
  spec: unknown;
  count: number;
  warnings: string[];
}) {
  const parameters = readParameters(spec);
  const outputs = [
    ...parts(spec, "root", "outputDefinitions", "parameters").map(([name, one]) => [
      name,
      TYPE_NAMES[textOf(one.parameterType)] ?? "",
    ]),
    ...parts(spec, "root", "outputDefinitions", "artifacts").map(([name, one]) => [
      name,
      artifactType(one),
    ]),
  ];
  return (
    <Section title="Parameters">
      <div className="flex flex-col gap-3">
        {parameters.length === 0 && <p className="text-quiet">This pipeline has none.</p>}
        <dl className="flex flex-col gap-2">
          {parameters.map(({ name, kind, description, initial, required }) => (
            <div key={name} className="min-w-0">
              <dt className="flex flex-wrap items-baseline gap-x-2">
                <code className="font-medium">{name}</code>
                <span className="text-sm text-quiet">
                  {kind}
                  {required && ", required"}
                </span>
              </dt>
              <dd className="min-w-0 text-quiet">
                {initial !== undefined && (
                  <code className="block truncate text-ink" title={toText(initial, "text")}>
                    {toText(initial, "text") || '""'}
                  </code>
                )}
                {description}
              </dd>
            </div>
          ))}
        </dl>
        {outputs.length > 0 && (
          <p>
            <span className="text-quiet">Gives </span>
            {outputs.map(([name, type]) => `${name} (${type})`).join(", ")}
          </p>
        )}
        <p className="text-quiet">
          {count} {count === 1 ? "task" : "tasks and groups"}. Select one to see what it runs.
        </p>
        <Warnings texts={warnings} />
      </div>
    </Section>
  );
}
