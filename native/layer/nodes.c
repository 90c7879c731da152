/* The files that the kernel knows, by their handles. Without the privilege to open those, every file
 * has a descriptor of its path, as long as there are enough; later it is opened by its name again. */
#include "layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BUCKETS (1u << 18)
#define MAX_DIRECTORIES 2048 /* descriptors that are kept open; there are limits on them */
#define MAX_PATHS 500000     /* the same, of all files */

#define HANDLE_IDENTIFIES 0x200 /* AT_HANDLE_FID */

static struct node *buckets[BUCKETS];
static struct node *root;
static int root_descriptor;
static struct node *oldest, *newest;
static unsigned cached, max_cached = MAX_DIRECTORIES;
static bool by_handles;

union space {
    struct file_handle handle;
    char bytes[sizeof(struct file_handle) + MAX_HANDLE];
};

static unsigned hash(ino_t inode, dev_t device)
{
    uint64_t mixed = ((uint64_t)inode ^ ((uint64_t)device << 32)) * 0x9E3779B97F4A7C15ull;
    return (unsigned)(mixed >> 46) & (BUCKETS - 1);
}

static void unlink_cached(struct node *node)
{
    if (node->newer)
        node->newer->older = node->older;
    else
        newest = node->older;
    if (node->older)
        node->older->newer = node->newer;
    else
        oldest = node->newer;
    node->newer = node->older = NULL;
}

static void push_cached(struct node *node)
{
    node->older = newest;
    node->newer = NULL;
    if (newest)
        newest->newer = node;
    newest = node;
    if (!oldest)
        oldest = node;
}

static void close_cached(struct node *node)
{
    if (node->descriptor < 0 || node == root)
        return;
    unlink_cached(node);
    close(node->descriptor);
    node->descriptor = -1;
    cached--;
}

static struct node *make(const struct stat *status, const struct file_handle *handle)
{
    struct node *node = calloc(1, sizeof *node + (handle ? handle->handle_bytes : 0));
    if (!node)
        return NULL;
    node->id = (uint64_t)(uintptr_t)node;
    node->inode = status->st_ino;
    node->device = status->st_dev;
    node->descriptor = -1;
    if (handle) {
        node->handle_size = (uint16_t)handle->handle_bytes;
        node->handle_type = handle->handle_type;
        memcpy(node->handle, handle->f_handle, handle->handle_bytes);
    }
    struct node **bucket = &buckets[hash(status->st_ino, status->st_dev)];
    node->next = *bucket;
    *bucket = node;
    return node;
}

/* Half of the descriptors that the process may have: the others are for open files. */
static void limit_paths(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    max_cached = limit.rlim_max / 2 < MAX_PATHS ? (unsigned)(limit.rlim_max / 2) : MAX_PATHS;
}

int nodes_begin(int descriptor, bool handles)
{
    struct stat status;
    by_handles = handles;
    if (!by_handles)
        limit_paths();
    if (fstat(descriptor, &status) < 0)
        return -errno;
    root = make(&status, NULL);
    if (!root)
        return -ENOMEM;
    root->id = 1;
    root->references = 1;
    root->descriptor = root_descriptor = descriptor;
    return 0;
}

/* The kernel only names nodes that it was told, until it forgets them. */
struct node *nodes_find(uint64_t id)
{
    return id == 1 ? root : (struct node *)(uintptr_t)id;
}

static void set_name(struct node *node, struct node *parent, const char *name)
{
    if (node == root || (node->parent == parent && node->name && !strcmp(node->name, name)))
        return;
    char *copy = strdup(name);
    if (!copy)
        return;
    struct node *before = node->parent;
    parent->references++;
    node->parent = parent;
    free(node->name);
    node->name = copy;
    if (before)
        nodes_release(before);
}

static int find(const struct stat *status, const struct file_handle *handle, struct node *parent,
                const char *name, struct node **found)
{
    struct node *node = buckets[hash(status->st_ino, status->st_dev)];
    while (node && !(node->inode == status->st_ino && node->device == status->st_dev &&
                     (node == root || (node->handle_size == handle->handle_bytes &&
                      !memcmp(node->handle, handle->f_handle, handle->handle_bytes)))))
        node = node->next;
    if (!node && !(node = make(status, handle)))
        return -ENOMEM;
    set_name(node, parent, name);
    node->lookups++;
    node->references++;
    if (!by_handles)
        nodes_descriptor(node); /* the name may be gone later */
    *found = node;
    return 0;
}

/* A layer that may not open handles only compares them, so AT_HANDLE_FID is enough: more file systems
 * support it than handles that can be opened. */
static int get_handle(int directory, const char *name, int flags, struct file_handle *handle)
{
    int mount, only_identifies = by_handles ? 0 : HANDLE_IDENTIFIES;
    int failed = name_to_handle_at(directory, name, handle, &mount, flags | only_identifies);
    if (failed && errno == EINVAL && only_identifies) { /* Linux before 6.5 */
        handle->handle_bytes = MAX_HANDLE;
        failed = name_to_handle_at(directory, name, handle, &mount, flags);
    }
    return failed;
}

int nodes_look_up(struct node *parent, const char *name, struct stat *status, struct node **found)
{
    int directory = nodes_descriptor(parent);
    union space space = {.handle.handle_bytes = MAX_HANDLE};
    if (directory < 0)
        return directory;
    if (fstatat(directory, name, status, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (status->st_dev != root->device)
        return -EXDEV; /* a mount below: it is not part of the volume */
    if (get_handle(directory, name, 0, &space.handle) < 0)
        return -errno;
    return find(status, &space.handle, parent, name, found);
}

int nodes_from_descriptor(int descriptor, struct node *parent, const char *name,
                          struct stat *status, struct node **found)
{
    union space space = {.handle.handle_bytes = MAX_HANDLE};
    if (fstat(descriptor, status) < 0 ||
        get_handle(descriptor, "", AT_EMPTY_PATH, &space.handle) < 0)
        return -errno;
    return find(status, &space.handle, parent, name, found);
}

void nodes_release(struct node *node)
{
    while (node && node != root && --node->references == 0) {
        struct node *parent = node->parent, **link = &buckets[hash(node->inode, node->device)];
        while (*link != node)
            link = &(*link)->next;
        *link = node->next;
        close_cached(node);
        free(node->name);
        free(node);
        node = parent;
    }
}

void nodes_forget(struct node *node, uint64_t lookups)
{
    if (node == root)
        return;
    if (lookups > node->lookups)
        lookups = node->lookups;
    node->lookups -= lookups;
    while (lookups--)
        nodes_release(node);
}

static int open_handle(struct node *node, int flags)
{
    union space space;
    space.handle.handle_bytes = node->handle_size;
    space.handle.handle_type = node->handle_type;
    memcpy(space.handle.f_handle, node->handle, node->handle_size);
    int opened = open_by_handle_at(root_descriptor, &space.handle, flags | O_CLOEXEC);
    return opened < 0 ? -errno : opened;
}

/* The path by the last name of the file, unless another file has that name now. */
static int open_name(struct node *node)
{
    union space space = {.handle.handle_bytes = MAX_HANDLE};
    int directory = node->parent ? nodes_descriptor(node->parent) : -ESTALE;
    if (directory < 0)
        return directory;
    int opened = openat(directory, node->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0)
        return -errno;
    if (get_handle(opened, "", AT_EMPTY_PATH, &space.handle) == 0 &&
        space.handle.handle_bytes == node->handle_size &&
        !memcmp(space.handle.f_handle, node->handle, node->handle_size))
        return opened;
    close(opened);
    return -ESTALE;
}

/* Open again what a descriptor of a path leads to. */
static int open_path(int descriptor, int flags)
{
    char path[64];
    int opened;
    if (flags & O_PATH) {
        opened = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    } else {
        snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
        opened = open(path, (flags & ~O_NOFOLLOW) | O_CLOEXEC);
    }
    return opened < 0 ? -errno : opened;
}

int nodes_open(struct node *node, int flags)
{
    if (node == root) {
        int opened = openat(root_descriptor, ".", flags | O_CLOEXEC);
        return opened < 0 ? -errno : opened;
    }
    if (by_handles)
        return open_handle(node, flags);
    int descriptor = nodes_descriptor(node);
    return descriptor < 0 ? descriptor : open_path(descriptor, flags);
}

static void keep_descriptor(struct node *node, int descriptor)
{
    if (cached >= max_cached)
        close_cached(oldest);
    node->descriptor = descriptor;
    push_cached(node);
    cached++;
}

int nodes_descriptor(struct node *node)
{
    if (node == root)
        return root_descriptor;
    if (node->descriptor >= 0) {
        if (node != newest) {
            unlink_cached(node);
            push_cached(node);
        }
        return node->descriptor;
    }
    int opened = by_handles ? open_handle(node, O_PATH | O_DIRECTORY) : open_name(node);
    if (opened >= 0)
        keep_descriptor(node, opened);
    return opened;
}

void nodes_rename(struct node *node, struct node *parent, const char *name)
{
    set_name(node, parent, name);
}

/* The path of a name in a directory, or of the node itself without one: from the end. */
size_t nodes_path(struct node *node, const char *name, char *path, size_t size)
{
    size_t at = size;
    for (const char *part = name; node; part = NULL) {
        if (!part) {
            if (node == root || !node->name)
                break;
            part = node->name;
            node = node->parent;
        }
        size_t length = strlen(part);
        if (length + 1 > at)
            break;
        at -= length;
        memcpy(path + at, part, length);
        path[--at] = '/';
    }
    memmove(path, path + at, size - at);
    return size - at;
}
