import { FilterInput } from "@/components/fields/filter-input";
import { Section } from "@/components/page";
import { ValueTable } from "../artifacts/value-table";
import { useRunSearch } from "../use-search";
import type { Execution } from "./use-execution";

type Fields = Record<string, unknown>;

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function pick(from: Fields, ...names: string[]): Fields {
  return Object.fromEntries(
    names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]),
  );
}

/** What the command found around it: machine, system, packages, variables. Secrets are not recorded. */
export function Environment({ execution }: { execution: Execution }) {
  const environment = execution.environment as Fields;
  const { cpu, memory, os, kernel, variables, devices, pinned, ...rest } = environment;
  const total = fields(memory).total;
  const gpus = Array.isArray(devices) ? devices : [];
  const git = fields(execution.git);
  return (
    <div className="grid min-w-0 items-start gap-4 xl:grid-cols-2">
      <Section title="Machine">
        <ValueTable
          label="Machine"
          values={{
            ...pick(rest, "hostname"),
            processor: fields(cpu).model,
            architecture: fields(cpu).architecture,
            cores: fields(cpu).usable ?? fields(cpu).count,
            ...(typeof total === "number" && { memory: `${(total / 2 ** 30).toFixed(1)} GiB` }),
            ...(gpus.length > 0 && { devices: gpus }),
          }}
        />
      </Section>
      <Section title="System">
        <ValueTable
          label="System"
          values={{
            system: fields(os).pretty_name,
            kernel: fields(kernel).release,
            ...pick(rest, "libc", "timezone", "umask"),
            user: fields(rest.user).name,
            ...(pinned !== undefined && { pinned }),
          }}
        />
      </Section>
      {typeof git.commit === "string" && (
        <Section title="Git">
          <ValueTable label="Git" values={git} />
        </Section>
      )}
      <Section title={`Packages (${execution.packages.length})`}>
        {execution.packages.length ? (
          <ValueTable
            label="Packages that you installed"
            values={Object.fromEntries(
              execution.packages.map((one) => [`${one.manager} ${one.name}`, one.version]),
            )}
          />
        ) : (
          <p className="text-quiet">It used no package that you installed yourself.</p>
        )}
      </Section>
      <Variables variables={fields(variables)} />
      {execution.credential_files.length > 0 && (
        <Section title="Credential files">
          <p className="mb-2 text-quiet">It read these files. Their content is not recorded.</p>
          <ul className="font-mono">
            {execution.credential_files.map((path) => (
              <li key={path} className="break-all">
                {path}
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Everything else">
        <details>
          <summary>Show</summary>
          <ValueTable label="Everything else" values={{ ...rest, cpu_flags: fields(cpu).flags }} />
        </details>
      </Section>
    </div>
  );
}

function Variables({ variables }: { variables: Fields }) {
  const [search, setSearch] = useRunSearch();
  const wanted = (search.find ?? "").toLowerCase();
  const shown = Object.fromEntries(
    Object.entries(variables).filter(([name, value]) =>
      `${name}=${value}`.toLowerCase().includes(wanted),
    ),
  );
  const count = Object.keys(variables).length;
  return (
    <Section
      title={`Variables (${count})`}
      actions={
        <div className="w-40">
          <FilterInput
            label="Filter the variables"
            placeholder="Filter"
            value={search.find}
            onChange={(find) => setSearch({ find }, true)}
          />
        </div>
      }
    >
      <p className="mb-2 text-quiet">Values of secrets are not recorded.</p>
      <ValueTable label="Variables" values={shown} />
    </Section>
  );
}
