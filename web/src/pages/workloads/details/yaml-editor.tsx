import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { defaultHighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ApiError } from "@/api/client";
import { Button } from "@/components/button";
import { ErrorCard } from "@/components/feedback";
import { replaceYaml } from "../api/actions";
import type { Workload } from "../api/documents";
import type { Openable } from "../common/open-path";
import { highlightStyle, THEME } from "./yaml-theme";

const CONFLICT = 409;

/** The resource as YAML. Saving replaces it, unless it was changed meanwhile. */
export default function YamlEditor({
  workload,
  collection,
}: {
  workload: Workload;
  collection: Openable;
}) {
  const { namespace, name, yaml: current } = workload;
  const client = useQueryClient();
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const [base, setBase] = useState(current);
  const [changed, setChanged] = useState(false);
  const save = useMutation({
    mutationFn: (text: string) => replaceYaml(collection, namespace, name, text, base),
    onSuccess: async () => {
      setChanged(false);
      await client.invalidateQueries({ queryKey: ["workloads"] });
    },
  });

  // What others change is shown as long as the user has changed nothing.
  if (!changed && base !== current) setBase(current);

  useEffect(() => {
    if (!host.current) return;
    const editor = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: base,
        extensions: [
          lineNumbers(),
          history(),
          yaml(),
          indentUnit.of("  "),
          syntaxHighlighting(highlightStyle),
          syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
          // Escape, then Tab leaves the editor: see CodeMirror's page on accessibility.
          keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
          EditorView.contentAttributes.of({ "aria-label": `YAML of ${name}` }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) setChanged(update.state.doc.toString() !== base);
          }),
          THEME,
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, [base, name]);

  const conflict = save.error instanceof ApiError && save.error.status === CONFLICT;
  function discard() {
    save.reset();
    setChanged(false);
    setBase(current);
    view.current?.dispatch({
      changes: { from: 0, to: view.current.state.doc.length, insert: current },
    });
  }
  return (
    <div className="flex flex-col gap-3">
      <p className="text-quiet">
        The resource as the system stores it. You can change labels, annotations and the spec. Press
        Escape, then Tab, to leave the editor.
      </p>
      <div
        ref={host}
        className="max-h-[60vh] min-h-40 overflow-auto rounded-lg border border-line bg-surface"
      />
      {save.error && <ErrorCard error={save.error} />}
      {conflict && <p>Discard your changes to see the current version, then make them again.</p>}
      <div className="flex flex-wrap items-center gap-2">
        <Button
          look="primary"
          disabled={!changed || save.isPending}
          onClick={() => view.current && save.mutate(view.current.state.doc.toString())}
        >
          {save.isPending ? "Saving…" : "Save"}
        </Button>
        <Button disabled={!changed} onClick={discard}>
          Discard changes
        </Button>
        <span role="status" className="text-quiet">
          {save.isSuccess && !changed ? "Saved." : ""}
        </span>
      </div>
    </div>
  );
}
