import { useEffect, useRef, useState } from "react";
import { Input } from "./field";

/**
 * A filter whose value is in the address. The router changes the address a moment after each key,
 * so the field keeps the text itself: keys that follow each other fast would be lost otherwise.
 */
export function FilterInput({
  label,
  placeholder = label,
  className,
  value,
  onChange,
}: {
  label: string;
  placeholder?: string;
  className?: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  const [text, setText] = useState(value ?? "");
  const sent = useRef<(string | undefined)[]>([]);
  useEffect(() => {
    const at = sent.current.indexOf(value);
    sent.current = sent.current.slice(at + 1);
    // Otherwise it is the answer to a key, and more keys may have been pressed since.
    if (at < 0) setText(value ?? "");
  }, [value]);
  return (
    <Input
      type="search"
      data-filter
      aria-label={label}
      placeholder={placeholder}
      className={className}
      value={text}
      onChange={({ target }) => {
        const next = target.value || undefined;
        sent.current.push(next);
        setText(target.value);
        onChange(next);
      }}
    />
  );
}
