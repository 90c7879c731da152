interface Named {
  id: string;
  name: string | null;
}

/** The entries, with their ids in names that several of them have: colour alone must not tell. */
export function distinguish<Entry extends Named>(entries: readonly Entry[]): Entry[] {
  const isShared = (name: string) => entries.filter((one) => one.name === name).length > 1;
  return entries.map((entry) =>
    entry.name && isShared(entry.name) ? { ...entry, name: `${entry.name} ${entry.id}` } : entry,
  );
}
