import { EmptyState } from "@/components/feedback";
import { Time } from "@/components/format/time";
import type { Condition } from "../api/documents";

/** The conditions that the controller has written. */
export function Conditions({ conditions }: { conditions: readonly Condition[] }) {
  if (conditions.length === 0) {
    return <EmptyState title="It has no conditions yet" />;
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: so that the keyboard can scroll it
    <div tabIndex={0} className="overflow-x-auto rounded-lg border border-line bg-surface">
      <table className="w-full text-left">
        <thead>
          <tr className="border-b border-line text-quiet">
            {["Condition", "Holds", "Reason", "Message", "Since"].map((title) => (
              <th key={title} scope="col" className="px-3 py-2 font-normal whitespace-nowrap">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {conditions.map((one) => (
            <tr
              key={`${one.type} ${one.at}`}
              className="border-b border-line align-top last:border-0"
            >
              <th scope="row" className="px-3 py-2 font-medium whitespace-nowrap">
                {one.type}
              </th>
              <td className="px-3 py-2">{HOLDS[one.status] ?? one.status}</td>
              <td className="px-3 py-2 whitespace-nowrap">{one.reason}</td>
              <td className="min-w-60 px-3 py-2 break-words">{one.message}</td>
              <td className="px-3 py-2 text-quiet">
                <Time at={one.at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const HOLDS: Record<string, string> = { True: "yes", False: "no", Unknown: "not known" };
