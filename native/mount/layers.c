/* FUSE file systems over the volumes. */
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static int set(int context, const char *name, const char *value)
{
    unsigned command = value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
    return (int)syscall(SYS_fsconfig, context, command, name, value, 0);
}

/* A detached mount that the holder of the device serves; -1: `errno`. */
static int make_mount(int device, bool read_only)
{
    char number[16];
    int context = (int)syscall(SYS_fsopen, "fuse", FSOPEN_CLOEXEC), made = -1;
    if (context < 0)
        return -1;
    snprintf(number, sizeof number, "%d", device);
    if (set(context, "source", "clew") == 0 && set(context, "subtype", "clew") == 0 &&
        set(context, "fd", number) == 0 && set(context, "rootmode", "40000") == 0 &&
        set(context, "user_id", "0") == 0 && set(context, "group_id", "0") == 0 &&
        set(context, "allow_other", NULL) == 0 && set(context, "default_permissions", NULL) == 0 &&
        syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
        unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0);
        made = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
    }
    int error = errno;
    close(context);
    errno = error;
    return made;
}

static bool mount_layer(const char *point)
{
    struct statvfs volume;
    int root = open(point, O_PATH | O_DIRECTORY | O_CLOEXEC), device = -1, made = -1;
    const char *step = "the volume cannot be opened as a directory";
    bool agreed = false;
    if (root >= 0 && fstatvfs(root, &volume) == 0) {
        step = "/dev/fuse cannot be opened";
        device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    }
    if (device >= 0) {
        step = "the layer cannot be mounted";
        made = make_mount(device, volume.f_flag & ST_RDONLY);
    }
    if (made >= 0 &&
        syscall(SYS_move_mount, made, "", AT_FDCWD, point, MOVE_MOUNT_F_EMPTY_PATH) == 0) {
        int descriptors[] = {device, root, made};
        agreed = sidecar_ask("mount", point, descriptors, 3);
    } else {
        sidecar_tell_failure(point, step, errno);
    }
    for (int i = 0; i < 3; i++) {
        int one = (int[]){device, root, made}[i];
        if (one >= 0)
            close(one);
    }
    return agreed;
}

/* A volume that cannot have a layer stays as it is. */
bool mount_layers(char **points, int count)
{
    bool any = false;
    for (int i = 0; i < count; i++)
        any |= mount_layer(points[i]);
    return any;
}
