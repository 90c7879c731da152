/* Listings of directories. */
#include "requests.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t put_entry(char *buffer, size_t room, const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
    if (size > room)
        return 0;
    struct fuse_dirent *made = (struct fuse_dirent *)buffer;
    memset(buffer, 0, size);
    made->ino = entry->d_ino;
    made->off = (uint64_t)entry->d_off;
    made->namelen = (uint32_t)length;
    made->type = entry->d_type;
    memcpy(made->name, entry->d_name, length);
    return size;
}

/* With the attributes, each entry counts as looked up, except `.` and `..`. */
static size_t put_entry_plus(char *buffer, size_t room, const struct dirent *entry,
                             struct node *directory)
{
    size_t head = offsetof(struct fuse_direntplus, dirent);
    if (room < head)
        return 0;
    size_t size = put_entry(buffer + head, room - head, entry);
    if (!size)
        return 0;
    struct fuse_entry_out *out = (struct fuse_entry_out *)buffer;
    memset(out, 0, sizeof *out);
    struct stat status;
    struct node *node;
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
        nodes_look_up(directory, entry->d_name, &status, &node) == 0)
        fill_entry(&status, node, out);
    return head + size;
}

void read_directory(const struct fuse_in_header *in, const struct fuse_read_in *args, bool plus)
{
    DIR *opened = (DIR *)(uintptr_t)args->fh;
    struct node *directory = nodes_find(in->nodeid);
    size_t room = args->size, used = 0;
    char *buffer = malloc(room);
    if (!buffer) {
        answer(in->unique, -ENOMEM, NULL, 0);
        return;
    }
    seekdir(opened, (long)args->offset);
    for (struct dirent *entry; (entry = readdir(opened));) {
        size_t put = plus ? put_entry_plus(buffer + used, room - used, entry, directory)
                          : put_entry(buffer + used, room - used, entry);
        if (!put)
            break;
        used += put;
    }
    answer(in->unique, 0, buffer, used);
    free(buffer);
}
