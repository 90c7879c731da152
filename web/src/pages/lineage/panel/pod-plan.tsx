import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import { Command } from "@/components/copy";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { count } from "@/components/format/count";
import { quote } from "./commands";

/** Which Pods would run to make something again, what would not be as it was, and the command. */
export function PodPlan({ id, asOf }: { id: string; asOf?: string }) {
  const { data, error } = useQuery({
    queryKey: ["lineage", "reproduction", id, asOf],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/reproduction-plan", {
          params: { query: { target: id, as_of: asOf } },
          signal,
        }),
      ),
  });
  const command = `clew reproduce ${quote(id)}${asOf ? ` --as-of ${asOf}` : ""}`;
  if (error) return <ErrorCard error={error} />;
  if (!data) return <Skeleton lines={5} />;
  return (
    <div className="flex flex-col gap-5">
      <section>
        <h3 className="mb-1 font-medium">What has to run</h3>
        {data.plan.length === 0 ? (
          <p>Nothing: its content is stored.</p>
        ) : (
          <>
            <ol className="list-decimal pl-5">
              {data.plan.map((pod) => (
                <li key={pod.uid}>
                  <code className="break-all">
                    {pod.namespace}/{pod.pod}
                  </code>
                  <p className="text-quiet">{pod.why}</p>
                </li>
              ))}
            </ol>
            <p className="text-quiet">
              {count(data.pods_by_file, "Pod")}; a plan that does not tell files apart has{" "}
              {data.pods_by_volume}.
            </p>
          </>
        )}
      </section>
      {data.skipped.length > 0 && (
        <details>
          <summary className="font-medium">Not run again ({data.skipped.length})</summary>
          <ul className="mt-1">
            {data.skipped.map((pod) => (
              <li key={pod.uid}>
                <code className="break-all">
                  {pod.namespace}/{pod.pod}
                </code>{" "}
                <span className="text-quiet">{pod.why}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {data.not_reproduced.length > 0 && (
        <section>
          <h3 className="mb-1 font-medium">What would not be as it was</h3>
          <ul className="list-disc pl-5">
            {data.not_reproduced.map(({ what, why }) => (
              <li key={`${what} ${why}`}>
                <code className="break-all">{what}</code> <span className="text-quiet">{why}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {data.plan.length > 0 && (
        <section className="flex flex-col items-start gap-2">
          <h3 className="font-medium">Run them again, and compare</h3>
          <p className="text-quiet">
            The command runs with your own rights on the cluster, in a namespace that is made and
            removed for it. With <code>--here</code> it uses containers of your machine.
          </p>
          <Command text={command} />
        </section>
      )}
    </div>
  );
}
