import { ExternalLink } from "lucide-react";

/**
 * Untrusted HTML of a recorded file. The frame has an origin that is equal to no other, and no
 * network: `sandbox` here, and the content security policy that the server sends with it.
 */
export function SandboxFrame({ version, title }: { version: string; title: string }) {
  const address = `/api/v1/versions/${encodeURIComponent(version)}/html`;
  return (
    <div className="flex flex-col gap-1">
      <iframe
        title={title}
        src={address}
        sandbox="allow-scripts"
        referrerPolicy="no-referrer"
        className="h-[60vh] min-h-64 w-full rounded-md border border-line bg-white"
      />
      <p className="flex flex-wrap items-center gap-x-3 text-quiet">
        Shown without network and without access to this app.
        <a
          className="inline-flex items-center gap-1 text-accent"
          href={address}
          target="_blank"
          rel="noopener noreferrer"
        >
          Open in a new tab <ExternalLink size={13} aria-hidden />
        </a>
      </p>
    </div>
  );
}

const POLICY =
  "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:; form-action 'none'";

/** A piece of untrusted HTML, such as an output of a notebook. No scripts run in it. */
export function SandboxSnippet({ html, title }: { html: string; title: string }) {
  const page = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${POLICY}"><meta charset="utf-8"><style>body{font:14px sans-serif;margin:8px}table{border-collapse:collapse}td,th{padding:2px 8px;border:1px solid #ccc}</style>${html}`;
  return (
    <iframe
      title={title}
      srcDoc={page}
      sandbox=""
      className="h-64 w-full resize-y rounded-md border border-line bg-white"
    />
  );
}
