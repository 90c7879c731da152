import { HighlightStyle } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

/** The editor in the colours of the app, for both themes. */
export const THEME = EditorView.theme({
  "&": { fontSize: "13px", color: "var(--color-ink)" },
  "&.cm-focused": { outline: "2px solid var(--color-accent)", outlineOffset: "-2px" },
  ".cm-content": { fontFamily: "var(--font-mono)", caretColor: "var(--color-ink)" },
  ".cm-cursor": { borderLeftColor: "var(--color-ink)" },
  ".cm-gutters": {
    backgroundColor: "var(--color-surface)",
    color: "var(--color-quiet)",
    border: "none",
  },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "var(--color-accent-soft)" },
});

export const highlightStyle = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--color-accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--color-success)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--color-running)" },
  { tag: tags.comment, color: "var(--color-quiet)" },
]);
