import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type Schemas } from "@/api/client";
import { Button } from "@/components/button";
import { ErrorCard } from "@/components/feedback";
import { Input } from "@/components/fields/field";
import { Time } from "@/components/format/time";
import { Section } from "@/components/page";

/** What users noted, and a field to add to it. */
export function Notes({ target, notes }: { target: string; notes: readonly Schemas["Note"][] }) {
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>(null);
  const client = useQueryClient();
  async function add(event: FormEvent) {
    event.preventDefault();
    setError(null);
    try {
      await api.POST("/api/v1/notes", { body: { target, notes: { note: text } } });
      setText("");
      await Promise.all(
        ["executions", "runs"].map((topic) => client.invalidateQueries({ queryKey: [topic] })),
      );
    } catch (failure) {
      setError(failure);
    }
  }
  const shown = notes.filter((note) => note.key !== "tag");
  return (
    <Section title="Notes">
      <div className="flex flex-col gap-3">
        {shown.length > 0 && (
          <ul className="flex flex-col gap-2">
            {shown.map((note) => (
              <li key={`${note.at} ${note.key}`}>
                <p className="break-words whitespace-pre-wrap">
                  {note.key !== "note" && <strong>{note.key}: </strong>}
                  {note.value}
                </p>
                <p className="text-sm text-quiet">
                  {note.agent}, <Time at={note.at} />
                </p>
              </li>
            ))}
          </ul>
        )}
        {error !== null && <ErrorCard error={error} />}
        <form onSubmit={add} className="flex gap-2">
          <Input
            aria-label="New note"
            placeholder="What is worth knowing about it?"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <Button type="submit" disabled={!text.trim()}>
            Add
          </Button>
        </form>
      </div>
    </Section>
  );
}
