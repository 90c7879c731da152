import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { type ReactNode, useRef, useState } from "react";
import { Button, IconButton } from "../button";
import { ErrorCard } from "../feedback";
import { Field, Input } from "../fields/field";

/** A dialog over the page. Escape and the close button call `onClose`. */
export function Dialog({
  open,
  onClose,
  title,
  description,
  wide = false,
  children,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: string;
  wide?: boolean;
  children: ReactNode;
}) {
  const opener = useRef<Element>(null);
  return (
    <Radix.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/50" />
        <Radix.Content
          {...(description ? {} : { "aria-describedby": undefined })}
          onOpenAutoFocus={() => {
            opener.current = document.activeElement;
          }}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (opener.current instanceof HTMLElement) opener.current.focus();
          }}
          className={`fixed top-[8vh] left-1/2 z-50 flex max-h-[84vh] w-[calc(100vw-2rem)] -translate-x-1/2 flex-col rounded-xl border border-line bg-raised shadow-xl ${wide ? "max-w-5xl" : "max-w-xl"}`}
        >
          <header className="flex items-center gap-2 border-b border-line py-2 pr-2 pl-4">
            <Radix.Title className="flex-1 font-semibold">{title}</Radix.Title>
            <Radix.Close asChild>
              <IconButton label="Close">
                <X size={16} aria-hidden />
              </IconButton>
            </Radix.Close>
          </header>
          <div className="overflow-y-auto p-4">
            {description && (
              <Radix.Description className="mb-3 text-quiet">{description}</Radix.Description>
            )}
            {children}
          </div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/**
 * Asks before something is deleted or ended. `onConfirm` may fail; the dialog then says why.
 * `typed`: what the user must type first, where a mistake cannot be undone.
 */
export function ConfirmDialog({
  open,
  onClose,
  title,
  children,
  action,
  typed,
  onConfirm,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  children: ReactNode;
  action: string;
  typed?: string;
  onConfirm: () => Promise<unknown>;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [text, setText] = useState("");
  function close() {
    setText("");
    setError(null);
    onClose();
  }
  async function confirm() {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      close();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }
  return (
    <Dialog open={open} onClose={close} title={title}>
      <div className="flex flex-col gap-4">
        <div className="flex flex-col gap-2">{children}</div>
        {typed && (
          <Field label={`Type ${typed} to confirm`}>
            <Input
              value={text}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setText(event.target.value)}
            />
          </Field>
        )}
        {error !== null && <ErrorCard error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Cancel</Button>
          <Button
            look="danger"
            onClick={confirm}
            disabled={busy || (typed !== undefined && text.trim() !== typed)}
          >
            {action}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
