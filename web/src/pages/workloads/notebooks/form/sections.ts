import type { BackendInfo } from "../../api/documents";
import type { FormConfig } from "../../api/form-config";
import type { Problems } from "./form-problems";
import type { NotebookForm } from "./form-state";

export { isReadOnly } from "./form-state";

/** What a part of the form gets. */
export interface SectionProps {
  form: NotebookForm;
  change: (part: Partial<NotebookForm>) => void;
  config: FormConfig;
  backend: BackendInfo;
  namespace: string;
  problems: Problems;
  /** Whether the notebook exists already. */
  editing: boolean;
}

export const FIXED = "Set by the administrator.";
