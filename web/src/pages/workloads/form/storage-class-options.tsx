import { useQuery } from "@tanstack/react-query";
import { storageClassesQuery } from "../api/queries";

/** The kinds of storage, for a select; an empty value is the default one. */
export function StorageClassOptions() {
  const { data: classes = [] } = useQuery(storageClassesQuery);
  const standard = classes.find((one) => one.default)?.name;
  return (
    <>
      <option value="">{standard ? `Default (${standard})` : "Default"}</option>
      {classes.map(({ name }) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </>
  );
}
