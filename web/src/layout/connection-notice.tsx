import { LoaderCircle, WifiOff } from "lucide-react";
import { useConnection } from "@/api/connection";
import { Button } from "@/components/button";
import { Dialog } from "@/components/overlays/dialog";

/** Says so while the server cannot be reached, and what to do when the session has ended. */
export function ConnectionNotice() {
  const connection = useConnection();
  return (
    <>
      <div role="status" aria-live="assertive">
        {connection === "lost" && (
          <p className="flex flex-wrap items-center gap-2 border-b border-line bg-warning-soft px-4 py-2 text-warning">
            <WifiOff size={16} aria-hidden />
            <span className="flex-1">
              The server cannot be reached. What you see may be old. If it was stopped, start it
              with <code className="font-mono">clew up</code>.
            </span>
            <span className="inline-flex items-center gap-1.5">
              <LoaderCircle size={14} aria-hidden className="animate-spin" /> Connecting…
            </span>
          </p>
        )}
      </div>
      {connection === "logged-out" && <LoggedOut />}
    </>
  );
}

function LoggedOut() {
  return (
    <Dialog open onClose={() => window.location.reload()} title="You are logged out">
      <div className="flex flex-col gap-4">
        <p>
          Your session has ended, or the server has a new token. Log in with the token: it is in the
          address that <code className="font-mono">clew up</code> and{" "}
          <code className="font-mono">clew server</code> print, and in the file{" "}
          <code className="font-mono">.clew/token</code> of the project.
        </p>
        <Button look="primary" className="self-start" onClick={() => window.location.reload()}>
          Log in
        </Button>
      </div>
    </Dialog>
  );
}
