import { Link, type LinkProps } from "@tanstack/react-router";
import type { ButtonHTMLAttributes, ReactNode } from "react";
import { classes } from "./classes";

type Look = "primary" | "secondary" | "quiet" | "danger";

const BASE =
  "inline-flex items-center justify-center gap-1.5 rounded-md px-3 min-h-8 font-medium whitespace-nowrap transition-colors disabled:opacity-55";
const LOOKS: Record<Look, string> = {
  primary: "bg-accent text-on-accent hover:brightness-110",
  secondary: "border border-line bg-surface hover:bg-sunken",
  quiet: "hover:bg-sunken",
  danger: "border border-line text-failure bg-surface hover:bg-failure-soft",
};

type Props = ButtonHTMLAttributes<HTMLButtonElement> & { look?: Look };

export function Button({ look = "secondary", className, type = "button", ...rest }: Props) {
  return <button type={type} className={classes(BASE, LOOKS[look], className)} {...rest} />;
}

/** A button with an icon alone: `label` is its name for screen readers, and its tooltip. */
export function IconButton({ label, ...rest }: Props & { label: string }) {
  return <Button look="quiet" aria-label={label} title={label} {...rest} />;
}

/** A link inside the app that looks like a button. */
export function ButtonLink({
  look = "secondary",
  className,
  children,
  ...rest
}: LinkProps & { look?: Look; className?: string; children: ReactNode }) {
  return (
    <Link className={classes(BASE, LOOKS[look], className)} {...rest}>
      {children}
    </Link>
  );
}

/** A link to another page, such as a notebook, in a new tab. */
export function ExternalButton({
  look = "secondary",
  href,
  children,
}: {
  look?: Look;
  href: string;
  children: ReactNode;
}) {
  return (
    <a className={classes(BASE, LOOKS[look])} href={href} target="_blank" rel="noopener">
      {children}
    </a>
  );
}
