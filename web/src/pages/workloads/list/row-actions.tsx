import { EllipsisVertical } from "lucide-react";
import type { ReactNode } from "react";
import { Button } from "@/components/button";
import { Menu, type MenuItem } from "@/components/overlays/menu";

/** The actions of a row; using them does not open the row. */
export function RowActions({
  name,
  items,
  children,
}: {
  name: string;
  items: MenuItem[];
  children: ReactNode;
}) {
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: only keeps events from the row
    <span
      className="flex items-center justify-end gap-1"
      onClick={(event) => event.stopPropagation()}
      onKeyDown={(event) => event.stopPropagation()}
    >
      {children}
      <Menu
        trigger={
          <Button
            look="quiet"
            aria-label={`Actions of ${name}`}
            title="More actions"
            className="px-1.5"
          >
            <EllipsisVertical size={16} aria-hidden />
          </Button>
        }
        items={items}
      />
    </span>
  );
}
