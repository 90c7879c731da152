/** The view of a comparison, as the URL has it. What is missing has its default. */
export interface CompareSearch {
  id?: string[];
  tab?: string;
}

export function validateCompareSearch(search: Record<string, unknown>): CompareSearch {
  return { id: Array.isArray(search.id) ? search.id.map(String) : undefined };
}
