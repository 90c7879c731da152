import { useMutation, useQueryClient } from "@tanstack/react-query";
import { CirclePause, CirclePlay, ExternalLink } from "lucide-react";
import { Button, ExternalButton, IconButton } from "@/components/button";
import { setStopped } from "../api/actions";
import type { ResourceStatus } from "../api/documents";
import { useBackend } from "../api/queries";
import { openPath } from "../common/open-path";
import { useFailure } from "./use-failure";

interface Props {
  collection: "notebooks" | "tensorboards";
  item: { namespace: string; name: string; status: ResourceStatus };
  /** What the link to it is called. */
  verb: "Connect" | "Open";
}

function useStopping({ collection, item }: Props) {
  const client = useQueryClient();
  const stopping = useMutation({
    mutationFn: (stopped: boolean) => setStopped(collection, item.namespace, item.name, stopped),
    onSettled: () => client.invalidateQueries({ queryKey: ["workloads"] }),
  });
  const isStopped = item.status.phase === "stopped";
  return {
    isStopped,
    change: () => stopping.mutate(!isStopped),
    isPending: stopping.isPending,
    failure: useFailure(stopping.error, () => stopping.reset()),
  };
}

/** Open, start and stop in a row of a list. */
export function RowStartStop(props: Props) {
  const { collection, item, verb } = props;
  const { name, status } = item;
  const { isStopped, change, isPending, failure } = useStopping(props);
  const backend = useBackend().data;
  if (status.phase === "terminating") return null;
  const Icon = isStopped ? CirclePlay : CirclePause;
  return (
    <>
      {!isStopped && (
        <ExternalButton href={openPath(backend, collection, item)}>
          <span className="max-sm:sr-only">{verb}</span>
          <ExternalLink size={14} aria-hidden />
          <span className="sr-only">
            {verb === "Connect" && "to "}
            {name} in a new tab
          </span>
        </ExternalButton>
      )}
      <IconButton
        label={isStopped ? `Start ${name}` : `Stop ${name}`}
        className="px-1.5"
        disabled={isPending}
        onClick={change}
      >
        <Icon size={17} aria-hidden />
      </IconButton>
      {failure}
    </>
  );
}

/** The same on a page of its own. */
export function PageStartStop(props: Props) {
  const { collection, item, verb } = props;
  const { isStopped, change, isPending, failure } = useStopping(props);
  const backend = useBackend().data;
  const Icon = isStopped ? CirclePlay : CirclePause;
  return (
    <>
      {!isStopped && (
        <ExternalButton look="primary" href={openPath(backend, collection, item)}>
          {verb} <ExternalLink size={14} aria-hidden />
          <span className="sr-only">in a new tab</span>
        </ExternalButton>
      )}
      <Button look={isStopped ? "primary" : "secondary"} disabled={isPending} onClick={change}>
        <Icon size={16} aria-hidden />
        {isStopped ? "Start" : "Stop"}
      </Button>
      {failure}
    </>
  );
}
