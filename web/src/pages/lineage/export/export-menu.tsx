import { Download } from "lucide-react";
import { useState } from "react";
import { Button } from "@/components/button";
import { ErrorCard } from "@/components/feedback";
import { Menu } from "@/components/overlays/menu";
import {
  buildGraphLinks,
  buildGraphNodes,
  findHighlighted,
  type LineageGraph,
} from "../graph-model";
import { fetchProv } from "../query";
import type { View } from "../view";
import { saveFile } from "./save-file";

/** Saves what the page shows: the records as PROV, or the drawing as a picture. */
export function ExportMenu({ view, graph }: { view: View; graph: LineageGraph | undefined }) {
  const [error, setError] = useState<unknown>(null);
  const save = (name: string, make: () => Promise<Blob>) => () => {
    setError(null);
    make().then((content) => saveFile(name, content), setError);
  };
  return (
    <>
      <Menu
        trigger={
          <Button disabled={!graph}>
            <Download size={15} aria-hidden /> Export
          </Button>
        }
        items={[
          {
            label: "PROV-JSON",
            onSelect: save("lineage.prov.json", () => fetchProv(view, "json")),
          },
          { label: "PROV-N", onSelect: save("lineage.provn", () => fetchProv(view, "n")) },
          {
            label: "SVG of the graph",
            disabled: !graph || view.view === "table",
            why: view.view === "table" ? "show the graph first" : undefined,
            onSelect: save("lineage.svg", () => drawSvg(graph as LineageGraph)),
          },
        ]}
      />
      {error !== null && (
        <div className="basis-full">
          <ErrorCard error={error} />
        </div>
      )}
    </>
  );
}

async function drawSvg(graph: LineageGraph): Promise<Blob> {
  const [{ arrange }, { writeSvg }] = await Promise.all([
    import("@/graph/layout"),
    import("./svg"),
  ]);
  const [nodes, links] = [buildGraphNodes(graph), buildGraphLinks(graph)];
  const places = await arrange(nodes, links, "right");
  const text = writeSvg(`Lineage of ${graph.target}`, nodes, links, places, findHighlighted(graph));
  return new Blob([text], { type: "image/svg+xml" });
}
