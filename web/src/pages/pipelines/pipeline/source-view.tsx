import { Download } from "lucide-react";
import { useMemo } from "react";
import { stringify } from "yaml";
import { Button } from "@/components/button";
import { CopyButton } from "@/components/copy";

/** Longer sources are only downloaded: nobody reads them here. */
const SHOWN_CHARACTERS = 500_000;

/** A compiled pipeline as YAML, as the kfp SDK writes it. */
export function SourceView({
  name,
  spec,
  platform,
}: {
  name: string;
  spec: unknown;
  platform: unknown;
}) {
  const text = useMemo(
    () =>
      [spec, platform]
        .filter(Boolean)
        .map((one) => stringify(one))
        .join("---\n"),
    [spec, platform],
  );
  function download() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
    link.download = `${name}.yaml`;
    link.click();
    URL.revokeObjectURL(link.href);
  }
  return (
    <section className="rounded-lg border border-line bg-surface">
      <header className="flex items-center gap-2 border-b border-line px-3 py-1.5">
        <span className="flex-1 text-quiet">Compiled pipeline</span>
        <CopyButton text={text} label="Copy the YAML" />
        <Button onClick={download}>
          <Download size={15} aria-hidden /> {name}.yaml
        </Button>
      </header>
      {text.length > SHOWN_CHARACTERS ? (
        <p className="p-4">It is too long to be shown. Download it.</p>
      ) : (
        <pre
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
          tabIndex={0}
          className="max-h-[65vh] overflow-auto p-4 font-mono text-sm"
        >
          {text}
        </pre>
      )}
    </section>
  );
}
