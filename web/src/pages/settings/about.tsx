import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, unwrap } from "@/api/client";
import { CodeBlock, CopyButton } from "@/components/copy";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { Time } from "@/components/format/time";
import { Section } from "@/components/page";

/** What serves the app, and how other programs reach it. */
export function About() {
  const server = useQuery({
    queryKey: ["settings", "server"],
    queryFn: () => unwrap(api.GET("/api/v1/server")),
  });
  const address = window.location.origin;
  return (
    <div className="flex flex-col gap-4">
      <Section title="About this server">
        {server.isPending && <Skeleton />}
        {server.error && <ErrorCard error={server.error} retry={server.refetch} />}
        {server.data && (
          <dl className="grid grid-cols-1 gap-x-6 gap-y-2 xs:grid-cols-[auto_1fr]">
            <Fact name="Clew">{server.data.version}</Fact>
            <Fact name="Address" copy={address}>
              {address}
            </Fact>
            <Fact name="Project" copy={server.data.project}>
              {server.data.project}
            </Fact>
            <Fact name="Project's uid" copy={server.data.uid}>
              {server.data.uid}
            </Fact>
            <Fact name="Machine">{server.data.machine}</Fact>
            <Fact name="Database">{server.data.database}</Fact>
            <Fact name="Store">{server.data.store}</Fact>
            <Fact name="Running since">
              <Time at={server.data.started} />
            </Fact>
          </dl>
        )}
      </Section>
      <Section title="Connect">
        <div className="flex flex-col gap-4">
          <p className="max-w-prose text-quiet">
            Replace TOKEN with an access token, which you create under Access tokens.
          </p>
          <Snippet title="The command line, on any machine">
            {`export CLEW_SERVER=${address}\nexport CLEW_TOKEN=TOKEN\nclew list`}
          </Snippet>
          <Snippet title="The Kubeflow Pipelines client">
            {`from kfp import Client\n\nclient = Client(host="${address}", existing_token="TOKEN")\nclient.create_run_from_pipeline_package("pipeline.yaml")`}
          </Snippet>
          <Snippet title="Any HTTP client">
            {`curl -H "Authorization: Bearer TOKEN" ${address}/api/v1/executions`}
          </Snippet>
          <p>
            <a className="text-accent underline" href="/api/v1/openapi.json">
              The OpenAPI document
            </a>{" "}
            describes every route.
          </p>
        </div>
      </Section>
    </div>
  );
}

function Fact({ name, copy, children }: { name: string; copy?: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-quiet">{name}</dt>
      <dd className="-my-1 flex min-h-8 min-w-0 items-center gap-1">
        <span className="min-w-0 break-all">{children}</span>
        {copy !== undefined && <CopyButton text={copy} label={`Copy: ${name}`} />}
      </dd>
    </>
  );
}

function Snippet({ title, children }: { title: string; children: string }) {
  return (
    <div className="flex flex-col gap-1">
      <h3 className="font-medium">{title}</h3>
      <CodeBlock text={children} label={title} />
    </div>
  );
}
