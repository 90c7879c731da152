/* Opened and closed files: the file below, and what the container did with it. */
#include "layer.h"
#include "protocol.h"
#include "requests.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool passthrough;

void files_begin(bool passes)
{
    passthrough = passes;
}

/* All openings of a file share one file below, which can be written if the file system permits:
 * the kernel refuses an opening that would need another one. */
static void pass(int device, struct open_file *file, struct open_answer *answer)
{
    struct node *node = file->node;
    if (!passthrough)
        return;
    if (!node->backing_opens) {
        struct backing_map map = {.descriptor = file->descriptor};
        int id = ioctl(device, BACKING_OPEN, &map);
        if (id <= 0)
            return; /* such as a file system that is stacked itself */
        node->backing = id;
    }
    node->backing_opens++;
    file->passes = true;
    answer->flags |= OPENED_PASSTHROUGH;
    answer->backing = node->backing;
}

int files_open(int device, struct node *node, int descriptor, uint32_t flags,
               const struct stat *status, bool created, struct open_answer *answer)
{
    struct open_file *file = calloc(1, sizeof *file);
    if (!file)
        return -ENOMEM;
    file->descriptor = descriptor;
    file->node = node;
    file->flags = flags;
    file->opened_at = now();
    file->created = created;
    file->truncated = flags & O_TRUNC;
    file->size = status->st_size;
    file->modified = status->st_mtim;
    node->references++;
    memset(answer, 0, sizeof *answer);
    answer->handle = (uint64_t)(uintptr_t)file;
    if (S_ISREG(status->st_mode))
        pass(device, file, answer);
    return 0;
}

static void record(const struct open_file *file)
{
    struct stat status;
    char path[PATH_MAX];
    uint32_t flags = 0, way = file->flags & O_ACCMODE;
    if (fstat(file->descriptor, &status) < 0 || !S_ISREG(status.st_mode))
        return;
    bool changed = file->created || file->truncated || status.st_size != file->size ||
                   status.st_mtim.tv_sec != file->modified.tv_sec ||
                   status.st_mtim.tv_nsec != file->modified.tv_nsec;
    if (way != O_WRONLY)
        flags |= READS;
    if (way != O_RDONLY)
        flags |= WRITES | (changed ? MODIFIED : 0);
    if (file->truncated || file->created)
        flags |= TRUNCATED;
    if (file->flags & O_APPEND)
        flags |= APPENDS;
    size_t length = nodes_path(file->node, NULL, path, sizeof path);
    log_access(ACCESS_CLOSED, flags, file->opened_at, file->node, &status, path, length,
               NULL, 0);
}

void files_close(int device, struct open_file *file)
{
    struct node *node = file->node;
    record(file);
    if (file->passes && --node->backing_opens == 0) {
        uint32_t id = (uint32_t)node->backing;
        ioctl(device, BACKING_CLOSE, &id);
        node->backing = 0;
    }
    close(file->descriptor);
    nodes_release(node);
    free(file);
}
