// The stock KFP client prints addresses of Kubeflow's own UI, such as /#/runs/details/ID.
// The part behind # never reaches the server, so the app translates it before the router starts.

const PAGES: [RegExp, string][] = [
  [/^#\/runs\/details\/([^/?]+)/, "/runs/$1"],
  [/^#\/experiments\/details\/([^/?]+)/, "/experiments?experiment=$1"],
  [/^#\/pipelines\/details\/([^/?]+)\/version\/([^/?]+)/, "/pipelines/$1?version=$2"],
  [/^#\/pipelines\/details\/([^/?]+)/, "/pipelines/$1"],
  [/^#\/recurringrun\/details\/([^/?]+)/, "/schedules?schedule=$1"],
  [/^#\/(runs|pipelines|experiments)\b/, "/$1"],
  [/^#\/recurringruns\b/, "/schedules"],
];

/** The path of our page for a hash of Kubeflow's UI; null if it is none. */
export function translateHash(hash: string): string | null {
  for (const [pattern, page] of PAGES) {
    const match = pattern.exec(hash);
    if (match) return page.replace(/\$(\d)/g, (_, n) => match[Number(n)] ?? "");
  }
  return null;
}

export function redirectHashLinks(): void {
  const page = translateHash(window.location.hash);
  if (page) window.history.replaceState(null, "", page);
}
