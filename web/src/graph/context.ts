import { createContext, type KeyboardEvent } from "react";
import type { Direction, Side } from "./graph";

interface Actions {
  direction: Direction;
  onSelect: (id: string) => void;
  onMore: (id: string, side: Side) => void;
  onKeyDown: (event: KeyboardEvent, id: string) => void;
}

/** What boxes need from their graph. It seldom changes, so that boxes are seldom drawn again. */
export const GraphContext = createContext<Actions>({
  direction: "right",
  onSelect: () => {},
  onMore: () => {},
  onKeyDown: () => {},
});
