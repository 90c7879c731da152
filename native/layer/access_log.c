/*
 * Records for the agent, through a pipe. A full pipe holds the container up instead of losing what
 * it did; without an agent at the other end, the file system goes on and counts.
 *
 * Record, little endian: u32 length of all, u32 kind, u32 flags, u32 links, i64 at, i64 size, i64 mtime,
 * i64 ctime, u32 mode, u32 lengths of handle, path and target, then these three. The handle begins
 * with its type, as the agent has it from fanotify.
 */
#include "layer.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int output;
static char buffer[1 << 16];
static size_t used;
static uint64_t lost;

struct record {
    uint32_t length, kind, flags, links;
    int64_t at, size, mtime, ctime;
    uint32_t mode, handle_length, path_length, target_length;
};

int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

void log_begin(int descriptor)
{
    output = descriptor;
}

void log_flush(void)
{
    for (size_t done = 0; done < used;) {
        ssize_t written = write(output, buffer + done, used - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            lost++;
            break;
        }
        done += (size_t)written;
    }
    used = 0;
}

static void append(const void *bytes, size_t length)
{
    memcpy(buffer + used, bytes, length);
    used += length;
}

void log_access(enum access_kind kind, uint32_t flags, int64_t at, struct node *node,
                const struct stat *status, const char *path, size_t length, const char *target,
                size_t target_length)
{
    struct record record = {
        .kind = kind, .flags = flags, .at = at,
        .handle_length = node ? 4u + node->handle_size : 0,
        .path_length = (uint32_t)length, .target_length = (uint32_t)target_length,
    };
    if (status) {
        record.size = status->st_size;
        record.mtime = status->st_mtim.tv_sec * 1000000000ll + status->st_mtim.tv_nsec;
        record.ctime = status->st_ctim.tv_sec * 1000000000ll + status->st_ctim.tv_nsec;
        record.mode = status->st_mode;
        record.links = (uint32_t)status->st_nlink;
    }
    record.length = (uint32_t)(sizeof record + record.handle_length + length + target_length);
    if (used + record.length > sizeof buffer)
        log_flush();
    append(&record, sizeof record);
    if (node) {
        append(&node->handle_type, 4);
        append(node->handle, node->handle_size);
    }
    append(path, length);
    append(target, target_length);
}
