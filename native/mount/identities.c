/* Who the command is, inside and outside of the user namespace: the same. */
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_MAP 4096

static bool bounds[CAP_LAST_CAP + 1];

/* The capabilities that the container could ever have. In its own user namespace it would have all,
 * and could remove the layer. */
void remember_bounds(void)
{
    for (int one = 0; one <= CAP_LAST_CAP; one++)
        bounds[one] = prctl(PR_CAPBSET_READ, one, 0, 0, 0) == 1;
}

void restore_bounds(void)
{
    for (int one = 0; one <= CAP_LAST_CAP; one++)
        if (!bounds[one])
            prctl(PR_CAPBSET_DROP, one, 0, 0, 0);
}

/* A map in which every id of this namespace has the same number in a new one. */
static size_t write_same(const char *own, char *map, size_t size)
{
    FILE *file = fopen(own, "re");
    unsigned long inside, outside, count;
    size_t used = 0;
    while (file && used < size && fscanf(file, "%lu %lu %lu", &inside, &outside, &count) == 3)
        used += (size_t)snprintf(map + used, size - used, "%lu %lu %lu\n", inside, inside, count);
    if (file)
        fclose(file);
    return used < size ? used : 0;
}

static int put_map(int directory, const char *name, const char *own)
{
    char map[MAX_MAP];
    size_t length = write_same(own, map, sizeof map);
    int opened = openat(directory, name, O_WRONLY | O_CLOEXEC);
    int failed = opened < 0 || !length || write(opened, map, length) != (ssize_t)length;
    if (opened >= 0)
        close(opened);
    return failed ? -1 : 0;
}

/* Give a process its map of users and groups. Whoever maps other users needs the capabilities for it,
 * here, and the user id of the one who made the namespace. */
int map_identities(int directory, uid_t user, gid_t group)
{
    struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    if (setegid(group) < 0 || syscall(SYS_capget, &version, sets) < 0 || seteuid(user) < 0)
        return -1;
    sets[0].effective = sets[0].permitted;
    if (syscall(SYS_capset, &version, sets) < 0)
        return -1;
    if (put_map(directory, "uid_map", "/proc/self/uid_map") < 0)
        return -1;
    return put_map(directory, "gid_map", "/proc/self/gid_map");
}
