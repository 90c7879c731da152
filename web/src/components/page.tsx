import { type ReactNode, useEffect } from "react";

/** The frame of a page: its title, its actions, and its content. */
export function Page({
  title,
  subtitle,
  actions,
  children,
}: {
  title: string;
  subtitle?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Clew`;
  }, [title]);
  return (
    <div className="mx-auto flex w-full max-w-[110rem] flex-col gap-4 p-4 md:p-6">
      <header className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <div className="min-w-0 flex-[1_1_18rem]">
          <h1 className="break-words">{title}</h1>
          {subtitle && <div className="text-quiet">{subtitle}</div>}
        </div>
        {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** A part of a page, in a box. */
export function Section({
  title,
  actions,
  children,
}: {
  title?: string;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="min-w-0 rounded-lg border border-line bg-surface">
      {title && (
        <header className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-2">
          <h2 className="flex-1">{title}</h2>
          {actions}
        </header>
      )}
      <div className="p-4">{children}</div>
    </section>
  );
}
