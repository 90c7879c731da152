import { Link } from "@tanstack/react-router";
import { ChartLine, NotebookPen } from "lucide-react";
import type { Schemas } from "@/api/client";
import { Time } from "@/components/format/time";
import { PhaseBadge } from "@/pages/workloads/common/phase";

const KINDS = {
  notebook: { icon: NotebookPen, path: "/notebooks" },
  tensorboard: { icon: ChartLine, path: "/tensorboards" },
};

/** Notebooks and TensorBoards that run, start, or cannot run. */
export function WorkloadList({ workloads }: { workloads: readonly Schemas["ActiveWorkload"][] }) {
  return (
    <ul className="-my-2 flex flex-col divide-y divide-line">
      {workloads.map(({ kind, namespace, name, phase, message, created }) => {
        const { icon: Icon, path } = KINDS[kind];
        const isProblem = phase === "error" || phase === "warning" || phase === "unavailable";
        return (
          <li
            key={`${kind}/${namespace}/${name}`}
            className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2"
          >
            <div className="min-w-0 flex-1 basis-56">
              <Link
                to={`${path}/${namespace}/${name}` as string}
                className="flex min-w-0 items-center gap-2 font-medium hover:underline"
              >
                <Icon size={15} aria-hidden className="shrink-0 text-quiet" />
                <span className="truncate">{name}</span>
              </Link>
              {isProblem && <p className="break-words text-failure">{message}</p>}
            </div>
            <span className="shrink-0 text-right whitespace-nowrap text-quiet">
              <Time at={created} />
            </span>
            <PhaseBadge phase={phase} />
          </li>
        );
      })}
    </ul>
  );
}
