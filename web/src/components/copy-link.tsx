import { Link2 } from "lucide-react";
import { useState } from "react";
import { Button } from "./button";

const SHOWN_MILLISECONDS = 1500;

/** Copies the address of the page, which has the whole view. */
export function CopyLink() {
  const [copied, setCopied] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(window.location.href);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MILLISECONDS);
  }
  return (
    <Button onClick={copy}>
      <Link2 size={15} aria-hidden /> {copied ? "Copied" : "Copy link"}
    </Button>
  );
}
