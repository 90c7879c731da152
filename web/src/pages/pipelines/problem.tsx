import { Info, TriangleAlert } from "lucide-react";
import type { Schemas } from "@/api/client";

/** A pipeline that is stored, but cannot run here: why, and what to do. */
export function ProblemCard({ problem }: { problem: Schemas["PipelineProblem"] }) {
  return (
    <div
      role="alert"
      className="flex items-start gap-3 rounded-lg border border-warning bg-warning-soft p-4"
    >
      <TriangleAlert aria-hidden className="mt-0.5 shrink-0 text-warning" size={18} />
      <div className="min-w-0 break-words">
        <p className="font-medium">This pipeline cannot run here: {problem.message}</p>
        {problem.hint && <p>{problem.hint}</p>}
      </div>
    </div>
  );
}

/** How a run here differs from one on a cluster. */
export function Warnings({ texts }: { texts: string[] }) {
  if (!texts.length) return null;
  return (
    <ul className="flex flex-col gap-1 text-quiet">
      {texts.map((text) => (
        <li key={text} className="flex items-start gap-2">
          <Info aria-hidden size={15} className="mt-0.5 shrink-0" /> {text}.
        </li>
      ))}
    </ul>
  );
}
