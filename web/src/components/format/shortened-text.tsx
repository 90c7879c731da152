const END = 14;

/**
 * A text that loses its middle where it does not fit: commands that differ in their last argument
 * still look different.
 */
export function ShortenedText({ text }: { text: string }) {
  const end = Math.max(0, text.length - END);
  return (
    <span className="flex min-w-0 flex-1 whitespace-pre">
      <span className="min-w-0 truncate">{text.slice(0, end)}</span>
      <span className="shrink-0">{text.slice(end)}</span>
    </span>
  );
}
