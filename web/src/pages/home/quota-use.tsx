import type { Schemas } from "@/api/client";
import { Meter } from "@/components/meter";
import { Section } from "@/components/page";

const NAMES: Record<string, string> = {
  "requests.cpu": "CPU",
  "requests.memory": "Memory",
  "limits.cpu": "CPU limit",
  "limits.memory": "Memory limit",
  "requests.nvidia.com/gpu": "NVIDIA GPUs",
  "requests.storage": "Storage of volumes",
  persistentvolumeclaims: "Volumes",
  pods: "Running containers",
};

/** How much of the namespace's quota is used, the fullest first. */
export function QuotaUse({ quota }: { quota: Schemas["Quota"] }) {
  return (
    <Section title={`Quota of ${quota.namespace}`}>
      <div className="flex flex-col gap-3">
        {quota.uses.map(({ resource, used, limit, share }) => (
          <Meter
            key={resource}
            label={NAMES[resource] ?? resource}
            detail={`${used} of ${limit}`}
            share={share}
          />
        ))}
      </div>
    </Section>
  );
}
