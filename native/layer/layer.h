/*
 * clew-layer: a pass-through file system that records who opened, changed and renamed what.
 *
 * It serves one mount in one container, so every request comes from that container. Data does not
 * pass through it: the kernel reads and writes the file below (FUSE_PASSTHROUGH). Files are known by
 * their handles, never by paths, so no link and no rename leads to another file. A layer without the
 * privilege to open a handle opens the name in its directory, and compares the handle.
 */
#ifndef CLEW_LAYER_H
#define CLEW_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define MAX_HANDLE 128

/* A file or directory that the kernel knows. */
struct node {
    uint64_t id;
    uint64_t lookups;
    ino_t inode;
    dev_t device;
    struct node *next;        /* with the same hash */
    struct node *parent;      /* of the name that it was last seen under; holds a reference */
    char *name;
    uint32_t references;      /* of the kernel, of children, of open files */
    int descriptor;           /* of the path, while it is cached; else -1 */
    struct node *newer, *older;   /* those with a descriptor, by their last use */
    int backing;              /* the kernel's id of the open file below; 0: none */
    uint32_t backing_opens;
    uint16_t handle_size;
    int32_t handle_type;
    unsigned char handle[];
};

/* An open file of the container. */
struct open_file {
    int descriptor;           /* for reads and writes that the kernel does not pass through */
    struct node *node;
    uint32_t flags;
    int64_t opened_at;
    struct timespec modified; /* when it was opened */
    off_t size;
    bool truncated, created, passes;
};

/* nodes.c */
int nodes_begin(int root, bool by_handles);
struct node *nodes_find(uint64_t id);
int nodes_look_up(struct node *parent, const char *name, struct stat *status, struct node **found);
int nodes_from_descriptor(int descriptor, struct node *parent, const char *name,
                          struct stat *status, struct node **found);
void nodes_forget(struct node *node, uint64_t lookups);
void nodes_release(struct node *node);
int nodes_descriptor(struct node *node);             /* of the path; it stays owned by the node */
int nodes_open(struct node *node, int flags);        /* a new descriptor, or -errno */
void nodes_rename(struct node *node, struct node *parent, const char *name);
size_t nodes_path(struct node *node, const char *name, char *path, size_t size);

/* access_log.c */
enum access_kind { ACCESS_CLOSED = 1, ACCESS_REMOVED = 2, ACCESS_RENAMED = 3 };
enum access_flags { READS = 1, WRITES = 2, MODIFIED = 4, TRUNCATED = 8, APPENDS = 16, DIRECTORY = 32 };
void log_begin(int descriptor);
void log_access(enum access_kind kind, uint32_t flags, int64_t at, struct node *node,
                const struct stat *status, const char *path, size_t length, const char *target,
                size_t target_length);
void log_flush(void);
int64_t now(void);

/* requests.c */
int serve(int device, int process);

#endif
