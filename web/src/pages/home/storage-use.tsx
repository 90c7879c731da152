import type { Schemas } from "@/api/client";
import { Command } from "@/components/copy";
import { formatBytes } from "@/components/format/bytes";
import { Meter } from "@/components/meter";
import { Section } from "@/components/page";

const WORTH_FREEING = 1_000_000;

/** The disk that the project takes. */
export function StorageUse({ bytes, free, reclaimable }: Schemas["StorageUse"]) {
  return (
    <Section title="Storage">
      <div className="flex flex-col gap-3">
        <Meter
          label={`${formatBytes(bytes)} stored`}
          detail={`${formatBytes(free)} free`}
          share={bytes / Math.max(1, bytes + free)}
        />
        {reclaimable !== null && reclaimable >= WORTH_FREEING && (
          <div>
            <p className="mb-1">
              {formatBytes(reclaimable)} of caches and unused content can be freed:
            </p>
            <Command text="clew gc" />
          </div>
        )}
      </div>
    </Section>
  );
}
