import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus, X } from "lucide-react";
import { type FormEvent, useState } from "react";
import { api } from "@/api/client";
import { Button } from "@/components/button";
import { ErrorCard } from "@/components/feedback";
import { Input } from "@/components/fields/field";

/** The tags of an execution or a run, which can be removed, and a field for another one. */
export function Tags({ id, tags }: { id: string; tags: readonly string[] }) {
  const [adding, setAdding] = useState(false);
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>(null);
  const client = useQueryClient();
  async function change(add: string[], remove: string[]) {
    setError(null);
    try {
      await api.POST("/api/v1/executions/{id}/tags", {
        params: { path: { id } },
        body: { add, remove },
      });
      await Promise.all(
        ["executions", "runs"].map((topic) => client.invalidateQueries({ queryKey: [topic] })),
      );
      return true;
    } catch (failure) {
      setError(failure);
      return false;
    }
  }
  async function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() && (await change([text.trim()], []))) {
      setText("");
      setAdding(false);
    }
  }
  return (
    <div className="flex flex-col gap-2">
      <ul className="flex flex-wrap items-center gap-1.5" aria-label="Tags">
        {tags.map((tag) => (
          <li
            key={tag}
            className="inline-flex max-w-full items-center rounded-full border border-line bg-surface pl-2.5"
          >
            <Link to="/runs" search={{ tag: [tag] }} className="truncate hover:underline">
              {tag}
            </Link>
            <button
              type="button"
              aria-label={`Remove the tag ${tag}`}
              className="p-1.5 text-quiet hover:text-ink"
              onClick={() => change([], [tag])}
            >
              <X size={13} aria-hidden />
            </button>
          </li>
        ))}
        <li>
          {adding ? (
            <form onSubmit={submit} className="flex items-center gap-1">
              <Input
                autoFocus
                aria-label="New tag"
                className="w-36"
                value={text}
                onChange={(event) => setText(event.target.value)}
                onKeyDown={(event) => event.key === "Escape" && setAdding(false)}
              />
              <Button type="submit">Add</Button>
            </form>
          ) : (
            <Button look="quiet" className="text-quiet" onClick={() => setAdding(true)}>
              <Plus size={14} aria-hidden /> Add a tag
            </Button>
          )}
        </li>
      </ul>
      {error !== null && <ErrorCard error={error} />}
    </div>
  );
}
