/* Requests of the kernel, one after the other. */
#include "requests.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MAX_WRITE (1u << 20)
#define BUFFER (MAX_WRITE + 4096)

static int device;
static char buffer[BUFFER] __attribute__((aligned(4096)));

static void initialize(const struct fuse_in_header *in, const struct fuse_init_in *args, bool passes)
{
    uint64_t offered = args->flags | ((args->flags & FUSE_INIT_EXT) ? (uint64_t)args->flags2 << 32 : 0);
    /* Without FUSE_EXPORT_SUPPORT: with it, privileged programs of the container choose node ids. */
    uint64_t wanted = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ATOMIC_O_TRUNC | FUSE_DO_READDIRPLUS |
                      FUSE_READDIRPLUS_AUTO | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES |
                      FUSE_HANDLE_KILLPRIV_V2 | FUSE_INIT_EXT |
                      FUSE_AUTO_INVAL_DATA | FUSE_DONT_MASK | FUSE_CACHE_SYMLINKS | INIT_PASSTHROUGH;
    uint64_t flags = offered & wanted;
    if (!passes)
        flags &= ~INIT_PASSTHROUGH;
    files_begin(flags & INIT_PASSTHROUGH);
    struct init_answer out = {
        .major = 7, .minor = 40, .max_readahead = args->max_readahead,
        .flags = (uint32_t)flags, .flags2 = (uint32_t)(flags >> 32),
        .max_background = UINT16_MAX, .congestion_threshold = UINT16_MAX, .max_write = MAX_WRITE,
        .time_granularity = 1, .max_pages = MAX_WRITE / 4096,
        .max_stack_depth = flags & INIT_PASSTHROUGH ? 1 : 0,
    };
    answer(in->unique, 0, &out, sizeof out);
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
    struct stat status;
    struct node *node;
    struct fuse_entry_out entry;
    int error = nodes_look_up(nodes_find(in->nodeid), name, &status, &node);
    if (error == -ENOENT) { /* an entry without a node is remembered as absent */
        memset(&entry, 0, sizeof entry);
        entry.entry_valid = valid_seconds();
        answer(in->unique, 0, &entry, sizeof entry);
    } else if (error) {
        answer(in->unique, error, NULL, 0);
    } else {
        fill_entry(&status, node, &entry);
        answer(in->unique, 0, &entry, sizeof entry);
    }
}

static int find_status(struct node *node, struct stat *status)
{
    int opened = nodes_open(node, O_PATH | O_NOFOLLOW);
    if (opened < 0)
        return opened;
    int error = fstat(opened, status) < 0 ? -errno : 0;
    close(opened);
    return error;
}

static void answer_attributes(const struct fuse_in_header *in, int error, const struct stat *status)
{
    struct fuse_attr_out out = {.attr_valid = valid_seconds()};
    if (!error)
        fill_attributes(status, &out.attr);
    answer(in->unique, error, &out, error ? 0 : sizeof out);
}

static int change(const struct fuse_setattr_in *args, int opened, const char *path)
{
    if (args->valid & FATTR_MODE && fchmodat(AT_FDCWD, path, args->mode & 07777, 0) < 0)
        return -errno;
    if (args->valid & (FATTR_UID | FATTR_GID)) {
        uid_t user = args->valid & FATTR_UID ? args->uid : (uid_t)-1;
        gid_t group = args->valid & FATTR_GID ? args->gid : (gid_t)-1;
        if (fchownat(opened, "", user, group, AT_EMPTY_PATH) < 0)
            return -errno;
    }
    if (args->valid & FATTR_SIZE && truncate(path, (off_t)args->size) < 0)
        return -errno;
    if (args->valid & (FATTR_ATIME | FATTR_MTIME)) {
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
        if (args->valid & FATTR_ATIME_NOW)
            times[0].tv_nsec = UTIME_NOW;
        else if (args->valid & FATTR_ATIME)
            times[0] = (struct timespec){(time_t)args->atime, args->atimensec};
        if (args->valid & FATTR_MTIME_NOW)
            times[1].tv_nsec = UTIME_NOW;
        else if (args->valid & FATTR_MTIME)
            times[1] = (struct timespec){(time_t)args->mtime, args->mtimensec};
        if (utimensat(opened, "", times, AT_EMPTY_PATH) < 0)
            return -errno;
    }
    return 0;
}

static void set_attributes(const struct fuse_in_header *in, const struct fuse_setattr_in *args)
{
    struct node *node = nodes_find(in->nodeid);
    struct stat status;
    char path[64];
    int opened = nodes_open(node, O_PATH | O_NOFOLLOW), error = opened;
    if (opened >= 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", opened);
        error = change(args, opened, path);
        if (!error && fstat(opened, &status) < 0)
            error = -errno;
        if (!error && args->valid & FATTR_SIZE && !(args->valid & FATTR_FH)) {
            char name[4096];
            size_t length = nodes_path(node, NULL, name, sizeof name);
            log_access(ACCESS_CLOSED, WRITES | MODIFIED | (args->size ? APPENDS : TRUNCATED), now(),
                       node, &status, name, length, NULL, 0);
        }
        close(opened);
    }
    answer_attributes(in, error, &status);
}

static void open_file(const struct fuse_in_header *in, const struct fuse_open_in *args)
{
    struct node *node = nodes_find(in->nodeid);
    struct open_answer out;
    struct stat status;
    int flags = (int)args->flags & (O_TRUNC | O_SYNC | O_DSYNC);
    int opened = nodes_open(node, flags | O_RDWR | O_NONBLOCK);
    if (opened < 0) /* a read-only file system, or a program that runs */
        opened = nodes_open(node, flags | ((int)args->flags & O_ACCMODE) | O_NONBLOCK);
    int error = opened < 0 ? opened : fstat(opened, &status) < 0 ? -errno : 0;
    if (!error)
        error = files_open(device, node, opened, args->flags, &status, false, &out);
    answer(in->unique, error, &out, error ? 0 : sizeof out);
}

static void read_file(const struct fuse_in_header *in, const struct fuse_read_in *args)
{
    struct open_file *file = (struct open_file *)(uintptr_t)args->fh;
    static char data[MAX_WRITE];
    size_t size = args->size < sizeof data ? args->size : sizeof data;
    ssize_t got = pread(file->descriptor, data, size, (off_t)args->offset);
    answer(in->unique, got < 0 ? -errno : 0, data, got < 0 ? 0 : (size_t)got);
}

static void write_file(const struct fuse_in_header *in, const struct fuse_write_in *args)
{
    struct open_file *file = (struct open_file *)(uintptr_t)args->fh;
    struct fuse_write_out out = {0};
    ssize_t put = pwrite(file->descriptor, args + 1, args->size, (off_t)args->offset);
    out.size = put < 0 ? 0 : (uint32_t)put;
    answer(in->unique, put < 0 ? -errno : 0, &out, put < 0 ? 0 : sizeof out);
}

static void open_directory(const struct fuse_in_header *in)
{
    int opened = nodes_open(nodes_find(in->nodeid), O_RDONLY | O_DIRECTORY);
    DIR *directory = opened < 0 ? NULL : fdopendir(opened);
    struct open_answer out = {.handle = (uint64_t)(uintptr_t)directory};
    answer(in->unique, opened < 0 ? opened : directory ? 0 : -ENOMEM, &out,
           directory ? sizeof out : 0);
}

static void read_link(const struct fuse_in_header *in)
{
    static char target[4096];
    int opened = nodes_open(nodes_find(in->nodeid), O_PATH | O_NOFOLLOW);
    ssize_t length = opened < 0 ? -1 : readlinkat(opened, "", target, sizeof target);
    int error = length < 0 ? -errno : 0;
    if (opened >= 0)
        close(opened);
    answer(in->unique, opened < 0 ? opened : error, target, length < 0 ? 0 : (size_t)length);
}

static void describe_space(const struct fuse_in_header *in)
{
    struct statvfs found;
    struct fuse_statfs_out out = {0};
    int error = fstatvfs(nodes_descriptor(nodes_find(1)), &found) < 0 ? -errno : 0;
    if (!error)
        out.st = (struct fuse_kstatfs){
            .blocks = found.f_blocks, .bfree = found.f_bfree, .bavail = found.f_bavail,
            .files = found.f_files, .ffree = found.f_ffree, .bsize = (uint32_t)found.f_bsize,
            .namelen = (uint32_t)found.f_namemax, .frsize = (uint32_t)found.f_frsize};
    answer(in->unique, error, &out, error ? 0 : sizeof out);
}

/* Extended attributes, through the link of a descriptor: they have no calls that take one of a path. */
static void extended_attributes(const struct fuse_in_header *in, const void *body)
{
    static char value[65536];
    char path[64];
    int opened = nodes_open(nodes_find(in->nodeid), O_PATH | O_NOFOLLOW);
    ssize_t size = 0;
    uint32_t wanted = 0;
    if (opened < 0) {
        answer(in->unique, opened, NULL, 0);
        return;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", opened);
    if (in->opcode == FUSE_SETXATTR) {
        const struct fuse_setxattr_in *args = body;
        const char *name = (const char *)body + FUSE_COMPAT_SETXATTR_IN_SIZE;
        size = setxattr(path, name, name + strlen(name) + 1, args->size, (int)args->flags);
    } else if (in->opcode == FUSE_REMOVEXATTR) {
        size = removexattr(path, body);
    } else {
        wanted = ((const struct fuse_getxattr_in *)body)->size;
        const char *name = (const char *)body + sizeof(struct fuse_getxattr_in);
        size_t room = wanted < sizeof value ? wanted : sizeof value;
        size = in->opcode == FUSE_GETXATTR ? getxattr(path, name, wanted ? value : NULL, room)
                                           : listxattr(path, wanted ? value : NULL, room);
    }
    int error = size < 0 ? -errno : 0;
    close(opened);
    struct fuse_getxattr_out needed = {.size = (uint32_t)(size < 0 ? 0 : size)};
    if (error || in->opcode == FUSE_SETXATTR || in->opcode == FUSE_REMOVEXATTR)
        answer(in->unique, error, NULL, 0);
    else if (!wanted)
        answer(in->unique, 0, &needed, sizeof needed);
    else
        answer(in->unique, 0, value, (size_t)size);
}

static void synchronize(const struct fuse_in_header *in, const struct fuse_fsync_in *args)
{
    int descriptor = in->opcode == FUSE_FSYNC
                         ? ((struct open_file *)(uintptr_t)args->fh)->descriptor
                         : dirfd((DIR *)(uintptr_t)args->fh);
    int failed = args->fsync_flags & 1 ? fdatasync(descriptor) : fsync(descriptor);
    answer(in->unique, failed < 0 ? -errno : 0, NULL, 0);
}

static void allocate(const struct fuse_in_header *in, const struct fuse_fallocate_in *args)
{
    struct open_file *file = (struct open_file *)(uintptr_t)args->fh;
    int failed = fallocate(file->descriptor, (int)args->mode, (off_t)args->offset, (off_t)args->length);
    answer(in->unique, failed < 0 ? -errno : 0, NULL, 0);
}

static void seek(const struct fuse_in_header *in, const struct fuse_lseek_in *args)
{
    struct open_file *file = (struct open_file *)(uintptr_t)args->fh;
    struct fuse_lseek_out out = {0};
    off_t found = lseek(file->descriptor, (off_t)args->offset, (int)args->whence);
    out.offset = found < 0 ? 0 : (uint64_t)found;
    answer(in->unique, found < 0 ? -errno : 0, &out, found < 0 ? 0 : sizeof out);
}

static void forget_many(const struct fuse_batch_forget_in *args)
{
    const struct fuse_forget_one *one = (const struct fuse_forget_one *)(args + 1);
    for (uint32_t i = 0; i < args->count; i++)
        nodes_forget(nodes_find(one[i].nodeid), one[i].nlookup);
}

static void handle(const struct fuse_in_header *in, const void *body, bool passes)
{
    struct stat status;
    int error;
    switch (in->opcode) {
    case FUSE_INIT: initialize(in, body, passes); return;
    case FUSE_LOOKUP: look_up(in, body); return;
    case FUSE_FORGET: nodes_forget(nodes_find(in->nodeid), ((const struct fuse_forget_in *)body)->nlookup); return;
    case FUSE_BATCH_FORGET: forget_many(body); return;
    case FUSE_INTERRUPT: return;
    case FUSE_GETATTR:
        error = find_status(nodes_find(in->nodeid), &status);
        answer_attributes(in, error, &status);
        return;
    case FUSE_SETATTR: set_attributes(in, body); return;
    case FUSE_READLINK: read_link(in); return;
    case FUSE_SYMLINK: case FUSE_MKNOD: case FUSE_MKDIR: make_entry(in, body); return;
    case FUSE_UNLINK: case FUSE_RMDIR: remove_entry(in, body); return;
    case FUSE_RENAME: case FUSE_RENAME2: rename_entry(in, body); return;
    case FUSE_LINK: link_entry(in, body); return;
    case FUSE_CREATE: create_file(device, in, body); return;
    case FUSE_OPEN: open_file(in, body); return;
    case FUSE_READ: read_file(in, body); return;
    case FUSE_WRITE: write_file(in, body); return;
    case FUSE_RELEASE:
        answer(in->unique, 0, NULL, 0);
        files_close(device, (struct open_file *)(uintptr_t)((const struct fuse_release_in *)body)->fh);
        return;
    case FUSE_OPENDIR: open_directory(in); return;
    case FUSE_READDIR: read_directory(in, body, false); return;
    case FUSE_READDIRPLUS: read_directory(in, body, true); return;
    case FUSE_RELEASEDIR:
        closedir((DIR *)(uintptr_t)((const struct fuse_release_in *)body)->fh);
        answer(in->unique, 0, NULL, 0);
        return;
    case FUSE_FSYNC: case FUSE_FSYNCDIR: synchronize(in, body); return;
    case FUSE_STATFS: describe_space(in); return;
    case FUSE_SETXATTR: case FUSE_GETXATTR: case FUSE_LISTXATTR: case FUSE_REMOVEXATTR:
        extended_attributes(in, body);
        return;
    case FUSE_FALLOCATE: allocate(in, body); return;
    case FUSE_LSEEK: seek(in, body); return;
    case FUSE_DESTROY: answer(in->unique, 0, NULL, 0); return;
    default: answer(in->unique, -ENOSYS, NULL, 0); /* the kernel asks for it no more */
    }
}

/* Wait for a request; false if the container has ended and there is none. Its last files are closed
 * before its first process has ended. */
static bool wait_for_request(int process)
{
    struct pollfd waiting[] = {{.fd = device, .events = POLLIN}, {.fd = process, .events = POLLIN}};
    if (poll(waiting, 2, 0) == 0) {
        log_flush(); /* before it waits */
        if (process >= 0)
            poll(waiting, 2, -1);
    }
    return waiting[0].revents || !waiting[1].revents;
}

int serve(int descriptor, int process)
{
    int error = 0;
    device = descriptor;
    while (wait_for_request(process)) {
        ssize_t got = read(device, buffer, sizeof buffer);
        if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
            continue;
        if (got < 0) { /* ENODEV: it is not mounted any more */
            error = errno == ENODEV ? 0 : -errno;
            break;
        }
        handle((const struct fuse_in_header *)buffer, buffer + sizeof(struct fuse_in_header), process < 0);
    }
    log_flush();
    return error;
}
