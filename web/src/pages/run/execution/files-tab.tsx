import { useInfiniteQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";
import { type Column, DataTable } from "@/components/data-table";
import { EmptyState, ErrorCard, Skeleton } from "@/components/feedback";
import { Select } from "@/components/fields/field";
import { FilterInput } from "@/components/fields/filter-input";
import { formatBytes } from "@/components/format/bytes";
import { count } from "@/components/format/count";
import { Dialog } from "@/components/overlays/dialog";
import { FilePreview } from "../artifacts/file-preview";
import { FILE_CLASSES, FILE_ROLES } from "../search";
import { useRunSearch } from "../use-search";

type File = Schemas["File"];

const PAGE = 200;

/** All files that an execution read or wrote; a file opens in a preview. */
export function FilesTab({ id }: { id: string }) {
  const [search, setSearch] = useRunSearch();
  const { role, category, path } = search;
  const files = useInfiniteQuery({
    queryKey: ["executions", "files", id, role, category, path],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/executions/{id}/files", {
          params: {
            path: { id },
            query: {
              role,
              class: category,
              path,
              offset: pageParam,
              limit: PAGE,
            },
          },
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (before) => before,
  });
  if (files.error) return <ErrorCard error={files.error} retry={() => files.refetch()} />;
  const rows = files.data?.pages.flatMap((page) => page.files) ?? [];
  return (
    <div className="flex min-w-0 flex-col gap-3">
      <div className="flex flex-wrap items-center gap-2">
        <FilterInput
          label="Filter by path"
          placeholder="Part of a path"
          className="max-w-64"
          value={path}
          onChange={(next) => setSearch({ path: next }, true)}
        />
        <Select
          aria-label="Read or written"
          className="max-w-40"
          value={role ?? ""}
          onChange={({ target }) =>
            setSearch({ role: FILE_ROLES.find((one) => one === target.value) }, true)
          }
        >
          <option value="">read or written</option>
          {FILE_ROLES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </Select>
        <Select
          aria-label="Kind of file"
          className="max-w-40"
          value={category ?? ""}
          onChange={({ target }) =>
            setSearch({ category: FILE_CLASSES.find((one) => one === target.value) }, true)
          }
        >
          <option value="">any kind</option>
          {FILE_CLASSES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </Select>
        <span className="text-quiet tabular-nums">
          {files.data && count(files.data.pages[0]?.total ?? 0, "file")}
        </span>
      </div>
      {!files.data ? (
        <Skeleton />
      ) : rows.length === 0 ? (
        <EmptyState title="No file matches" />
      ) : (
        <DataTable
          label="Files"
          columns={COLUMNS}
          rows={rows}
          rowKey={(row) => row.path}
          onOpen={(row) =>
            setSearch({ file: row.role === "input" ? `${row.path}@input` : row.path })
          }
          onEnd={() => files.hasNextPage && !files.isFetching && files.fetchNextPage()}
        />
      )}
      <Dialog
        wide
        open={search.file !== undefined}
        onClose={() => setSearch({ file: undefined })}
        title={search.file ?? ""}
      >
        {search.file && <FilePreview version={`${id}:${search.file}`} />}
      </Dialog>
    </div>
  );
}

const COLUMNS: Column<File>[] = [
  {
    id: "path",
    header: "Path",
    width: "minmax(16rem, 1fr)",
    cell: (row) => (
      <span title={row.path} className="font-mono text-[0.93rem]">
        {row.path}
      </span>
    ),
  },
  { id: "role", header: "Role", width: "7rem", cell: (row) => row.role },
  { id: "class", header: "Kind", width: "8rem", cell: (row) => row.class },
  {
    id: "package",
    header: "Package",
    width: "12rem",
    cell: (row) => (row.package ? `${row.package.name} ${row.package.version ?? ""}` : ""),
  },
  {
    id: "size",
    header: "Size",
    width: "7rem",
    align: "right",
    cell: (row) => (typeof row.size === "number" ? formatBytes(row.size) : "–"),
  },
];
