import { Download } from "lucide-react";
import { Button } from "@/components/button";
import { Menu } from "@/components/overlays/menu";

const LABELS = {
  bundle: "Bundle for another project",
  "ro-crate": "RO-Crate",
  "prov-json": "W3C PROV (JSON)",
  "prov-n": "W3C PROV (PROV-N)",
  dockerfile: "Dockerfile with its files",
  oci: "Container image",
  runner: "Program that repeats it",
};

/** Downloads an execution or a run in a form that other programs read. */
export function ExportMenu({
  path,
  formats,
  disabled,
}: {
  /** The route of the export, without the format. */
  path: string;
  formats: readonly (keyof typeof LABELS)[];
  disabled: boolean;
}) {
  return (
    <Menu
      trigger={
        <Button disabled={disabled}>
          <Download size={15} aria-hidden /> Export
        </Button>
      }
      items={formats.map((format) => ({
        label: LABELS[format],
        onSelect: () => download(`${path}?format=${format}`),
      }))}
    />
  );
}

function download(address: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = "";
  link.click();
}
