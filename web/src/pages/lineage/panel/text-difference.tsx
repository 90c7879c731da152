import { unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";

/** Two texts line by line; unchanged parts are folded. */
export default function TextDifference({ before, after }: { before: string; after: string }) {
  const host = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!host.current) return;
    const view = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: after,
        extensions: [
          lineNumbers(),
          EditorView.editable.of(false),
          EditorState.readOnly.of(true),
          EditorView.contentAttributes.of({ tabindex: "0", "aria-label": "The differences" }),
          unifiedMergeView({
            original: before,
            mergeControls: false,
            collapseUnchanged: { margin: 3, minSize: 6 },
          }),
        ],
      }),
    });
    return () => view.destroy();
  }, [before, after]);
  return (
    <section
      ref={host}
      aria-label="Differences of the content"
      className="max-h-[45vh] overflow-auto rounded-lg border border-line bg-surface"
    />
  );
}
