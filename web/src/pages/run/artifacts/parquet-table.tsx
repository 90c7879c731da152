import { useQuery } from "@tanstack/react-query";
import { ErrorCard, Skeleton } from "@/components/feedback";
import { formatBytes } from "@/components/format/bytes";
import { MAX_PARQUET_BYTES, readParquet } from "./parquet";
import { RowTable } from "./row-table";

/** The first rows of a Parquet file. */
export function ParquetTable({ version, size }: { version: string; size: number }) {
  const fits = size <= MAX_PARQUET_BYTES;
  const { data, error } = useQuery({
    queryKey: ["parquet", version],
    queryFn: async () => {
      const path = `/api/v1/versions/${encodeURIComponent(version)}/content`;
      const response = await fetch(path);
      if (!response.ok) throw new Error(`The file cannot be read: ${response.status}.`);
      return readParquet(await response.arrayBuffer());
    },
    enabled: fits,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  if (!fits) {
    return (
      <p>
        Files of more than {formatBytes(MAX_PARQUET_BYTES)} are not shown here. Download the file,
        or read it with pandas.
      </p>
    );
  }
  if (error) return <ErrorCard error={error} />;
  if (!data) return <Skeleton />;
  return (
    <>
      <p className="text-quiet">
        {data.total.toLocaleString("en")} rows
        {data.rows.length < data.total && `, of which the first ${data.rows.length} are shown`}
        {data.hidden > 0 && `; ${data.hidden} more columns are not shown`}
      </p>
      <RowTable columns={data.columns} rows={data.rows} />
    </>
  );
}
