import { Check, Copy } from "lucide-react";
import { IconButton } from "./button";
import { useCopy } from "./copy-text";

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [copied, copy] = useCopy();
  return (
    <IconButton label={copied ? "Copied" : label} onClick={() => copy(text)} className="px-1.5">
      {copied ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
    </IconButton>
  );
}

/** A command to type, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-1 rounded-md border border-line bg-sunken py-0.5 pr-0.5 pl-3">
      <code className="min-w-0 text-left font-mono whitespace-pre-wrap wrap-anywhere">{text}</code>
      <CopyButton text={text} label="Copy the command" />
    </span>
  );
}

/** Several lines of code or configuration, with a button that copies them. `tall`: it may scroll. */
export function CodeBlock({
  text,
  label,
  tall = false,
}: {
  text: string;
  label: string;
  tall?: boolean;
}) {
  return (
    <div className="relative min-w-0 rounded-md border border-line bg-sunken">
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also with the keyboard
        tabIndex={0}
        role="region"
        aria-label={label}
        className={`overflow-auto py-2 pr-12 pl-3 font-mono ${tall ? "max-h-[60vh]" : ""}`}
      >
        {text}
      </pre>
      <span className="absolute top-1 right-1 rounded-md bg-sunken">
        <CopyButton text={text} label={`Copy: ${label}`} />
      </span>
    </div>
  );
}
