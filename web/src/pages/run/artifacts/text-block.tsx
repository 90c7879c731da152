// biome-ignore-all lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
/** A text as it is, which scrolls if it is long or wide. */
export function TextBlock({ text, label }: { text: string; label: string }) {
  return (
    <pre
      tabIndex={0}
      role="group"
      aria-label={label}
      className="max-h-[60vh] min-w-0 flex-1 overflow-auto rounded-md border border-line bg-sunken p-2 font-mono text-[0.86rem]"
    >
      {text}
    </pre>
  );
}
