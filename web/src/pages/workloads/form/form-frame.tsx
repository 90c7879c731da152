import { type FormEvent, type ReactNode, useState } from "react";
import { Button } from "@/components/button";
import { ErrorCard } from "@/components/feedback";

/**
 * A form with its error, and with buttons that stay visible. While a submission is on its way, it
 * cannot be submitted again; a failed one can.
 */
export function FormFrame({
  action,
  busyAction,
  onSubmit,
  onCancel,
  hasProblems,
  children,
}: {
  action: string;
  busyAction: string;
  onSubmit: () => Promise<unknown>;
  onCancel: () => void;
  /** Whether fields are wrong: shown in place of sending them. */
  hasProblems: () => boolean;
  children: ReactNode;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    if (busy) return;
    const form = event.currentTarget;
    if (hasProblems()) {
      requestAnimationFrame(() => showFirstProblem(form));
      return;
    }
    setBusy(true);
    setError(null);
    try {
      await onSubmit();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }
  return (
    <form className="flex max-w-3xl flex-col gap-3" onSubmit={submit} noValidate>
      {children}
      {error !== null && <ErrorCard error={error} />}
      <div className="sticky bottom-0 z-10 -mx-1 flex flex-wrap items-center gap-2 border-t border-line bg-page px-1 py-3">
        <Button type="submit" look="primary" disabled={busy}>
          {busy ? busyAction : action}
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </form>
  );
}

/** Open what hides the first wrong field, and focus it. */
function showFirstProblem(form: HTMLFormElement): void {
  const field = form.querySelector<HTMLElement>("[aria-invalid=true], [data-problem]");
  for (let part = field?.closest("details"); part; part = part.parentElement?.closest("details")) {
    part.open = true;
  }
  const control = field?.matches("input, select, textarea") ? field : field?.querySelector("input");
  (control as HTMLElement | null)?.focus();
}
