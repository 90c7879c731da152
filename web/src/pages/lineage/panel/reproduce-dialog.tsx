import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import { ButtonLink } from "@/components/button";
import { Command } from "@/components/copy";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Dialog } from "@/components/overlays/dialog";
import type { Box } from "../graph-model";
import { isLeftByPods, quote } from "./commands";
import { PodPlan } from "./pod-plan";

interface Props {
  box: Box;
  /** The time at which names of a cluster are meant. */
  asOf?: string;
  onClose: () => void;
}

/** How to make a thing again: what would run, the commands, and the way to the repeat. */
export function ReproduceDialog({ box, asOf, onClose }: Props) {
  return (
    <Dialog open onClose={onClose} title={`How to reproduce ${box.title}`} wide>
      {isLeftByPods(box) ? <PodPlan id={box.id} asOf={asOf} /> : <Recreation box={box} />}
    </Dialog>
  );
}

function Recreation({ box }: { box: Box }) {
  const id = box.id;
  const { data, error } = useQuery({
    queryKey: ["lineage", "recreation", id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/versions/{id}/recreation", { params: { path: { id } }, signal })),
  });
  const execution = box.node?.execution;
  return (
    <div className="flex flex-col gap-5">
      <section>
        <h3 className="mb-1 font-medium">What has to run</h3>
        {error ? (
          <ErrorCard error={error} />
        ) : !data ? (
          <Skeleton lines={3} />
        ) : (
          <>
            {data.runs.length === 0 && (
              <p>
                Nothing: its content is {data.unpacked.length ? "in a stored archive" : "stored"}.
              </p>
            )}
            <ol className="list-decimal pl-5">
              {data.runs.map((run) => (
                <li key={run.execution}>
                  <span className="font-medium">{run.execution}</span>{" "}
                  <code className="break-all">{run.command.join(" ")}</code>
                  <p className="text-quiet">makes {run.makes.join(", ")}</p>
                </li>
              ))}
            </ol>
            {data.taken.length > 0 && (
              <p className="text-quiet">Taken from disk: {data.taken.join(", ")}</p>
            )}
          </>
        )}
      </section>
      <section className="flex flex-col items-start gap-2">
        <h3 className="font-medium">Get this file again</h3>
        <Command text={`clew recreate ${quote(id)}`} />
      </section>
      {execution && (
        <section className="flex flex-col items-start gap-2">
          <h3 className="font-medium">
            {box.node?.found
              ? `Repeat ${execution}, which used it`
              : `Repeat ${execution}, which made it`}
          </h3>
          <p className="text-quiet">
            The repeat runs in isolation with the recorded files, and says whether the results are
            identical and what caused each difference.
          </p>
          <Command text={`clew repeat ${execution}`} />
          <ButtonLink
            look="primary"
            to="/runs/$id"
            params={{ id: execution }}
            search={{ tab: "repeats" }}
          >
            Open {execution} to repeat it
          </ButtonLink>
        </section>
      )}
    </div>
  );
}
