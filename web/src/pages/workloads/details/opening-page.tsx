import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { ApiError } from "@/api/client";
import { Button, ExternalButton } from "@/components/button";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Page } from "@/components/page";
import { create, setStopped } from "../api/actions";
import { useBackend, workloadQuery } from "../api/queries";
import { lacksProgram, type Openable, PROGRAMS, servedPath } from "../common/open-path";
import { Phase } from "../common/phase";
import { ProgramBanner } from "../common/program-banner";
import { useRequestKey } from "../form/request-key";

const TAKEN = 409;
const WORDS = { notebooks: "notebook", tensorboards: "TensorBoard", volumes: "volume" };

/**
 * Waits until a notebook, TensorBoard or the file browser of a volume is ready, says meanwhile why
 * it is not, and then goes there. It is opened in a tab of its own, so that the link can be used
 * before there is anything to show.
 */
export function OpeningPage({ collection }: { collection: Openable }) {
  const { namespace, name } = useParams({ strict: false }) as { namespace: string; name: string };
  const shown = collection === "volumes" ? ("viewers" as const) : collection;
  const client = useQueryClient();
  const key = useRequestKey();
  const asked = useRef(false);
  const [failure, setFailure] = useState<unknown>(null);
  const [made, setMade] = useState(collection !== "volumes");
  const { data, error } = useQuery({ ...workloadQuery(shown, namespace, name), enabled: made });
  const backend = useBackend().data;
  const ready = data?.phase === "ready";
  const path = servedPath(collection, namespace, name);

  useEffect(() => {
    if (collection !== "volumes" || asked.current) return;
    asked.current = true;
    openViewer(namespace, name, key).then(() => setMade(true), setFailure);
  }, [collection, namespace, name, key]);
  const isBare = backend !== undefined && lacksProgram(backend, collection);
  const goes = ready && backend !== undefined && !isBare;
  useEffect(() => {
    if (goes) window.location.replace(path);
  }, [goes, path]);

  async function start() {
    try {
      await setStopped(shown, namespace, name, false);
      await client.invalidateQueries({ queryKey: ["workloads"] });
    } catch (problem) {
      setFailure(problem);
    }
  }

  const program = PROGRAMS[collection];
  const problem = failure ?? error;
  return (
    <Page title={collection === "volumes" ? `Files of ${name}` : name}>
      {program && backend && <ProgramBanner name={program} backend={backend} />}
      {problem ? (
        <ErrorCard error={problem} />
      ) : data ? (
        <div className="flex flex-col gap-4">
          <Phase status={{ ...data, state: "" }} collection={shown} wrap />
          {data.phase === "stopped" ? (
            <div>
              <Button look="primary" onClick={start}>
                Start it
              </Button>
            </div>
          ) : ready && isBare ? (
            <div className="flex flex-col items-start gap-2">
              <p>
                It runs with Jupyter Server alone, for programs: there is no page to work in. When
                JupyterLab is installed, it starts again with it, and opens here.
              </p>
              <ExternalButton href={path}>Open the page of Jupyter Server</ExternalButton>
            </div>
          ) : (
            <p role="status" className="text-quiet">
              {ready
                ? `Opening the ${WORDS[collection]}…`
                : "This page opens it as soon as it is ready."}
            </p>
          )}
          <p>
            <Link
              to={`/${collection}/$namespace/$name`}
              params={{ namespace, name }}
              search={{ tab: "events" }}
              className="text-accent underline"
            >
              What happened so far
            </Link>
          </p>
        </div>
      ) : (
        <Skeleton lines={2} />
      )}
    </Page>
  );
}

/** Open the file browser of a volume; one that is open stays, and one that was stopped starts. */
async function openViewer(namespace: string, name: string, key: string): Promise<void> {
  try {
    await create("viewers", namespace, { name }, key);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== TAKEN) throw error;
    await setStopped("viewers", namespace, name, false);
  }
}

export const OpenNotebook = () => <OpeningPage collection="notebooks" />;
export const OpenTensorboard = () => <OpeningPage collection="tensorboards" />;
export const OpenVolume = () => <OpeningPage collection="volumes" />;
