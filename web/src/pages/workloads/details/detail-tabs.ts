/** The parts of the page of a notebook, TensorBoard or volume. */
export const DETAIL_TABS = ["overview", "events", "logs", "conditions", "advanced"] as const;
export type DetailTab = (typeof DETAIL_TABS)[number];
