import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { IconButton } from "./button";

const SHOWN_MILLISECONDS = 1500;

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MILLISECONDS);
  }
  return (
    <IconButton label={copied ? "Copied" : label} onClick={copy} className="px-1.5">
      {copied ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
    </IconButton>
  );
}

/** A command to type, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-1 rounded-md border border-line bg-sunken py-0.5 pr-0.5 pl-3">
      <code className="overflow-x-auto font-mono whitespace-pre">{text}</code>
      <CopyButton text={text} label={`Copy ${text}`} />
    </span>
  );
}
