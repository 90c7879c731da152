/* Answers to the kernel. */
#include "requests.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int device;
static uint64_t seconds;

void answers_begin(int descriptor, uint64_t valid)
{
    device = descriptor;
    seconds = valid;
}

uint64_t valid_seconds(void)
{
    return seconds;
}

/* The kernel refuses an answer to a request that was interrupted; that is all right. */
void answer(uint64_t unique, int error, const void *data, size_t size)
{
    struct fuse_out_header out = {.len = (uint32_t)(sizeof out + size), .error = error, .unique = unique};
    struct iovec parts[] = {{&out, sizeof out}, {(void *)(uintptr_t)data, size}};
    if (writev(device, parts, size ? 2 : 1) < 0)
        return;
}

void fill_attributes(const struct stat *status, struct fuse_attr *attr)
{
    memset(attr, 0, sizeof *attr);
    attr->ino = status->st_ino;
    attr->size = (uint64_t)status->st_size;
    attr->blocks = (uint64_t)status->st_blocks;
    attr->atime = (uint64_t)status->st_atim.tv_sec;
    attr->mtime = (uint64_t)status->st_mtim.tv_sec;
    attr->ctime = (uint64_t)status->st_ctim.tv_sec;
    attr->atimensec = (uint32_t)status->st_atim.tv_nsec;
    attr->mtimensec = (uint32_t)status->st_mtim.tv_nsec;
    attr->ctimensec = (uint32_t)status->st_ctim.tv_nsec;
    attr->mode = status->st_mode;
    attr->nlink = (uint32_t)status->st_nlink;
    attr->uid = status->st_uid;
    attr->gid = status->st_gid;
    attr->rdev = (uint32_t)status->st_rdev;
    attr->blksize = (uint32_t)status->st_blksize;
}

void fill_entry(const struct stat *status, struct node *node, struct fuse_entry_out *entry)
{
    memset(entry, 0, sizeof *entry);
    entry->nodeid = node->id;
    entry->entry_valid = seconds;
    entry->attr_valid = seconds;
    fill_attributes(status, &entry->attr);
}
