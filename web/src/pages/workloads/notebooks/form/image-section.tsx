import { Checkbox, Field, Input, Select } from "@/components/fields/field";
import {
  imageField,
  imageLabel,
  images,
  SERVER_TYPES,
  type ServerType,
  serverTypes,
} from "../../api/form-config";
import type { SectionProps } from "./sections";
import { FIXED, isReadOnly } from "./sections";

const PULL_POLICIES: Record<string, string> = {
  IfNotPresent: "If it is not there yet",
  Always: "Before each start",
  Never: "Never",
};

/** The image of a notebook: a listed one, or the user's own. */
export function ImageFields({ form, change, config, problems, editing }: SectionProps) {
  const types = serverTypes(config);
  const field = imageField(config, form.serverType);
  const fixed = field?.readOnly === true;
  const allowsCustom = config.allowCustomImage !== false && !fixed;
  return (
    <>
      {types.length > 1 && !editing && (
        <Field label="Application">
          <Select
            value={form.serverType}
            onChange={(event) => {
              const serverType = event.target.value as ServerType;
              change({ serverType, image: images(config, serverType)[0] ?? "", customImage: null });
            }}
          >
            {types.map((type) => (
              <option key={type} value={type}>
                {SERVER_TYPES[type]}
              </option>
            ))}
          </Select>
        </Field>
      )}
      {form.customImage === null ? (
        <Field label="Image" hint={fixed ? FIXED : imageHint(form.image)} error={problems.image}>
          <Select
            value={form.image}
            disabled={fixed}
            onChange={(event) => change({ image: event.target.value })}
          >
            {images(config, form.serverType).map((image) => (
              <option key={image} value={image}>
                {imageLabel(image, config)}
              </option>
            ))}
          </Select>
        </Field>
      ) : (
        <Field
          label="Custom image"
          hint="The image must serve at the path in $NB_PREFIX, as Kubeflow's do."
          error={problems.image}
        >
          <Input
            value={form.customImage}
            spellCheck={false}
            placeholder="registry.example.org/team/jupyter:2.1"
            onChange={(event) => change({ customImage: event.target.value })}
          />
        </Field>
      )}
      {allowsCustom && (
        <Checkbox
          label="Custom image"
          checked={form.customImage !== null}
          onChange={(event) => change({ customImage: event.target.checked ? "" : null })}
        />
      )}
    </>
  );
}

function imageHint(image: string): string | undefined {
  return image === "this-machine"
    ? "Notebooks run in the environment in which Clew is installed."
    : undefined;
}

export function PullPolicyField({ form, change, config }: SectionProps) {
  const fixed = isReadOnly(config, "imagePullPolicy");
  return (
    <Field label="Pull the image" hint={fixed ? FIXED : undefined}>
      <Select
        value={form.pullPolicy}
        disabled={fixed}
        onChange={(event) => change({ pullPolicy: event.target.value })}
      >
        {Object.entries(PULL_POLICIES).map(([policy, label]) => (
          <option key={policy} value={policy}>
            {label}
          </option>
        ))}
      </Select>
    </Field>
  );
}
