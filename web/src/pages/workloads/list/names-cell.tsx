/** Names in a cell: as many as fit, and all of them on hover. */
export function Names({ names }: { names: readonly string[] }) {
  if (names.length === 0) return <span className="text-quiet">–</span>;
  const text = names.join(", ");
  return <span title={text}>{text}</span>;
}
