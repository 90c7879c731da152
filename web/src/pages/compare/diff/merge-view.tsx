import { python } from "@codemirror/lang-python";
import { yaml } from "@codemirror/lang-yaml";
import { defaultHighlightStyle, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { MergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";

interface Props {
  name: string;
  a: string;
  b: string;
  labels: [string, string];
}

const THEME = EditorView.theme({
  "&": { backgroundColor: "transparent", color: "var(--color-ink)", fontSize: "13px" },
  ".cm-gutters": {
    backgroundColor: "var(--color-sunken)",
    color: "var(--color-quiet)",
    border: "none",
  },
  ".cm-content": { fontFamily: "var(--font-mono)" },
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "var(--color-failure-soft)" },
  "&.cm-merge-b .cm-changedLine": { backgroundColor: "var(--color-success-soft)" },
  ".cm-collapsedLines": {
    background: "var(--color-sunken)",
    color: "var(--color-quiet)",
  },
});

/** Two texts side by side, with what differs marked. Loaded when it is first shown. */
export default function TextMergeView({ name, a, b, labels }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [first, second] = labels;
  useEffect(() => {
    if (!place.current) return;
    const side = (doc: string, label: string) => ({
      doc,
      extensions: [
        lineNumbers(),
        EditorState.readOnly.of(true),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true" }),
        THEME,
        highlighting(name),
      ],
    });
    const view = new MergeView({
      parent: place.current,
      a: side(a, `${name} of ${first}`),
      b: side(b, `${name} of ${second}`),
      collapseUnchanged: { margin: 4, minSize: 8 },
    });
    return () => view.destroy();
  }, [name, a, b, first, second]);
  return <div ref={place} className="min-w-0 overflow-auto [&_.cm-mergeView]:min-w-[40rem]" />;
}

/** The default colours are made for a light page: on a dark one, they are mixed with white. */
const COLORS = HighlightStyle.define(
  defaultHighlightStyle.specs.map((spec) =>
    typeof spec.color === "string"
      ? {
          ...spec,
          color: `light-dark(${spec.color}, color-mix(in oklab, ${spec.color} 40%, white))`,
        }
      : spec,
  ),
);

function highlighting(name: string): Extension {
  const language = /\.py$/.test(name) ? python() : /\.ya?ml$/.test(name) ? yaml() : [];
  return [language, syntaxHighlighting(COLORS)];
}
