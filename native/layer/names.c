/* Requests that create, remove and change names. */
#include "requests.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
static struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];

void users_begin(void)
{
    syscall(SYS_capget, &version, capabilities);
}

/* New files belong to the user of the request. setfsuid drops the capabilities
 * for files, so they are restored: the kernel has already checked the request, with supplementary
 * groups that are unknown here. */
void become(const struct fuse_in_header *in)
{
    if (in->gid)
        syscall(SYS_setfsgid, in->gid);
    if (in->uid) {
        syscall(SYS_setfsuid, in->uid);
        syscall(SYS_capset, &version, capabilities);
    }
}

void become_again(const struct fuse_in_header *in)
{
    if (in->uid)
        syscall(SYS_setfsuid, 0);
    if (in->gid)
        syscall(SYS_setfsgid, 0);
}

static void answer_entry(const struct fuse_in_header *in, struct node *parent, const char *name)
{
    struct stat status;
    struct node *node;
    struct fuse_entry_out entry;
    int error = nodes_look_up(parent, name, &status, &node);
    if (error) {
        answer(in->unique, error, NULL, 0);
        return;
    }
    fill_entry(&status, node, &entry);
    answer(in->unique, 0, &entry, sizeof entry);
}

void create_file(int device, const struct fuse_in_header *in, const void *body)
{
    const struct fuse_create_in *args = body;
    const char *name = (const char *)(args + 1);
    struct node *parent = nodes_find(in->nodeid), *node;
    struct stat status;
    struct {
        struct fuse_entry_out entry;
        struct open_answer open;
    } made;
    int directory = nodes_descriptor(parent), error = directory, opened;
    if (directory >= 0) {
        int flags = (int)args->flags & ~(O_NOFOLLOW | O_DIRECT | O_APPEND);
        if ((flags & O_ACCMODE) == O_WRONLY)
            flags = (flags & ~O_ACCMODE) | O_RDWR; /* the file below is for all who open it */
        become(in);
        opened = openat(directory, name, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                        args->mode & ~args->umask);
        error = opened < 0 ? -errno : 0;
        become_again(in);
    }
    if (!error && (error = nodes_from_descriptor(opened, parent, name, &status, &node)) == 0) {
        error = files_open(device, node, opened, args->flags, &status, true, &made.open);
        if (error)
            nodes_forget(node, 1);
    }
    if (error) {
        answer(in->unique, error, NULL, 0);
        return;
    }
    fill_entry(&status, node, &made.entry);
    answer(in->unique, 0, &made, sizeof made);
}

void make_entry(const struct fuse_in_header *in, const void *body)
{
    struct node *parent = nodes_find(in->nodeid);
    int directory = nodes_descriptor(parent), made = -1;
    const char *name = body;
    if (directory < 0) {
        answer(in->unique, directory, NULL, 0);
        return;
    }
    become(in);
    if (in->opcode == FUSE_MKDIR) {
        const struct fuse_mkdir_in *args = body;
        name = (const char *)(args + 1);
        made = mkdirat(directory, name, args->mode & ~args->umask);
    } else if (in->opcode == FUSE_MKNOD) {
        const struct fuse_mknod_in *args = body;
        name = (const char *)(args + 1);
        made = mknodat(directory, name, args->mode & ~args->umask, args->rdev);
    } else { /* a symbolic link: the name, then the target */
        made = symlinkat(name + strlen(name) + 1, directory, name);
    }
    int error = made < 0 ? -errno : 0;
    become_again(in);
    if (error)
        answer(in->unique, error, NULL, 0);
    else
        answer_entry(in, parent, name);
}

void link_entry(const struct fuse_in_header *in, const void *body)
{
    const struct fuse_link_in *args = body;
    const char *name = (const char *)(args + 1);
    struct node *parent = nodes_find(in->nodeid);
    char path[64];
    int directory = nodes_descriptor(parent);
    int opened = nodes_open(nodes_find(args->oldnodeid), O_PATH | O_NOFOLLOW);
    int error = directory < 0 ? directory : opened < 0 ? opened : 0;
    if (!error) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", opened);
        error = linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
    }
    if (opened >= 0)
        close(opened);
    if (error)
        answer(in->unique, error, NULL, 0);
    else
        answer_entry(in, parent, name);
}

void remove_entry(const struct fuse_in_header *in, const char *name)
{
    struct node *parent = nodes_find(in->nodeid);
    char path[PATH_MAX];
    bool file = in->opcode == FUSE_UNLINK;
    int directory = nodes_descriptor(parent), error = directory;
    if (directory >= 0)
        error = unlinkat(directory, name, file ? 0 : AT_REMOVEDIR) < 0 ? -errno : 0;
    answer(in->unique, error, NULL, 0);
    if (!error && file) {
        size_t length = nodes_path(parent, name, path, sizeof path);
        log_access(ACCESS_REMOVED, 0, now(), NULL, NULL, path, length, NULL, 0);
    }
}

void rename_entry(const struct fuse_in_header *in, const void *body)
{
    uint64_t target = in->opcode == FUSE_RENAME2 ? ((const struct fuse_rename2_in *)body)->newdir
                                                 : ((const struct fuse_rename_in *)body)->newdir;
    unsigned flags = in->opcode == FUSE_RENAME2 ? ((const struct fuse_rename2_in *)body)->flags : 0;
    const char *old = (const char *)body + (in->opcode == FUSE_RENAME2
                                                ? sizeof(struct fuse_rename2_in)
                                                : sizeof(struct fuse_rename_in));
    const char *new = old + strlen(old) + 1;
    struct node *from = nodes_find(in->nodeid), *to = nodes_find(target), *node;
    int source = nodes_descriptor(from), destination = nodes_descriptor(to), error;
    char before[PATH_MAX], after[PATH_MAX];
    struct stat status;
    if (source < 0 || destination < 0)
        error = source < 0 ? source : destination;
    else if (flags & ~RENAME_NOREPLACE)
        error = -EINVAL; /* exchanging names is not supported: programs then do without */
    else
        error = syscall(SYS_renameat2, source, old, destination, new, flags) < 0 ? -errno : 0;
    answer(in->unique, error, NULL, 0);
    if (error || nodes_look_up(to, new, &status, &node))
        return;
    size_t length = nodes_path(from, old, before, sizeof before);
    size_t other = nodes_path(to, new, after, sizeof after);
    log_access(ACCESS_RENAMED, S_ISDIR(status.st_mode) ? DIRECTORY : 0, now(), node,
               &status, before, length, after, other);
    nodes_forget(node, 1);
}
