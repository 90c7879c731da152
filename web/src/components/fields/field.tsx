import {
  cloneElement,
  type InputHTMLAttributes,
  type ReactElement,
  type SelectHTMLAttributes,
  useId,
} from "react";
import { classes } from "../classes";

const CONTROL =
  "min-h-8 w-full rounded-md border border-line-strong bg-surface px-2.5 text-ink placeholder:text-quiet aria-invalid:border-failure disabled:bg-sunken disabled:text-quiet";

/** A labelled form control, with a hint below it, or what is wrong with its value. */
export function Field({
  label,
  hint,
  error,
  children,
}: {
  label: string;
  hint?: string;
  error?: string | null;
  children: ReactElement<{
    id?: string;
    "aria-describedby"?: string;
    "aria-invalid"?: boolean;
  }>;
}) {
  const id = useId();
  const note = error || hint;
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      {cloneElement(children, {
        id,
        "aria-describedby": note ? `${id}-note` : undefined,
        "aria-invalid": error ? true : undefined,
      })}
      {note && (
        <p id={`${id}-note`} className={error ? "text-failure" : "text-quiet"}>
          {note}
        </p>
      )}
    </div>
  );
}

export function Input({ className, ...rest }: InputHTMLAttributes<HTMLInputElement>) {
  return <input className={classes(CONTROL, className)} {...rest} />;
}

export function Select({ className, ...rest }: SelectHTMLAttributes<HTMLSelectElement>) {
  return <select className={classes(CONTROL, className)} {...rest} />;
}

/** A checkbox with its label behind it. */
export function Checkbox({
  label,
  ...rest
}: InputHTMLAttributes<HTMLInputElement> & { label: string }) {
  return (
    <label className="inline-flex items-center gap-2">
      <input type="checkbox" className="size-4 accent-accent" {...rest} />
      {label}
    </label>
  );
}
