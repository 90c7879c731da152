import { Link2 } from "lucide-react";
import { Button } from "./button";
import { useCopy } from "./copy-text";

/** Copies the address of the page, which has the whole view. */
export function CopyLink() {
  const [copied, copy] = useCopy();
  return (
    <Button onClick={() => copy(window.location.href)}>
      <Link2 size={15} aria-hidden /> {copied ? "Copied" : "Copy link"}
    </Button>
  );
}
