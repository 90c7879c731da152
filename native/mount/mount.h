/*
 * clew-mount: runs the command of a container below layers of its own, without privileges.
 *
 * A process of the container makes a user namespace and a mount namespace, mounts a FUSE file system
 * over each volume, and hands it to the sidecar, which serves it. Then the container's first process
 * enters both and runs the command. If a step fails, the command runs as if there was no layer, and
 * the sidecar is told.
 */
#ifndef CLEW_MOUNT_H
#define CLEW_MOUNT_H

#include <stdbool.h>
#include <sys/types.h>

/* sidecar_client.c: a message of text and descriptors, and whether the sidecar agreed to it */
bool sidecar_connect(const char *path);
bool sidecar_ask(const char *kind, const char *text, const int *descriptors, int count);
void sidecar_tell_failure(const char *point, const char *step, int error);

/* layers.c: in the new namespaces */
bool mount_layers(char **points, int count);

/* identities.c */
int map_identities(int directory, uid_t user, gid_t group);
void remember_bounds(void);
void restore_bounds(void);

#endif
