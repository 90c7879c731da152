/*
 * clew-mount SOCKET CONTAINER POINT... -- COMMAND...    what a container runs in place of COMMAND
 * clew-mount --map DIRECTORY USER GROUP                 what the sidecar runs for a user namespace:
 *                                                       DIRECTORY is a descriptor of /proc/PID
 */
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child: if it fails halfway, the container's own process is as it was. */
static bool prepare_namespaces(char **points, int count)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
        sidecar_tell_failure("", "the container may not make a user namespace", errno);
        return false;
    }
    int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self < 0 || !sidecar_ask("map", "", &self, 1)) {
        sidecar_tell_failure("", "the users of the user namespace cannot be mapped", EPERM);
        return false;
    }
    return mount_layers(points, count);
}

static void enter_namespaces(char **points, int count)
{
    int ready[2], process = -1;
    char directory[PATH_MAX], word = 0;
    if (!getcwd(directory, sizeof directory) || pipe2(ready, O_CLOEXEC) < 0)
        return;
    remember_bounds();
    pid_t child = fork();
    if (child == 0) {
        close(ready[0]);
        if (prepare_namespaces(points, count) && write(ready[1], "+", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    if (child > 0 && read(ready[0], &word, 1) == 1)
        process = (int)syscall(SYS_pidfd_open, child, 0);
    if (process >= 0 && setns(process, CLONE_NEWUSER | CLONE_NEWNS) == 0) {
        restore_bounds();
        if (chdir(directory) < 0)
            fprintf(stderr, "clew-mount: %s: %s\n", directory, strerror(errno));
    } else if (word) {
        sidecar_tell_failure("", "the namespaces cannot be entered", errno);
    }
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    close(ready[0]);
    if (process >= 0)
        close(process);
}

int main(int count, char **words)
{
    if (count == 5 && !strcmp(words[1], "--map"))
        return map_identities(atoi(words[2]), (uid_t)atol(words[3]), (gid_t)atol(words[4])) ? 1 : 0;
    int end = 3;
    while (end < count && strcmp(words[end], "--"))
        end++;
    if (end + 1 >= count) {
        fprintf(stderr, "usage: clew-mount SOCKET CONTAINER POINT... -- COMMAND...\n");
        return 2;
    }
    int own = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (own >= 0 && sidecar_connect(words[1]) && sidecar_ask("container", words[2], &own, 1))
        enter_namespaces(words + 3, end - 3);
    else
        fprintf(stderr, "clew-mount: no sidecar at %s: files are not observed\n", words[1]);
    if (own >= 0)
        close(own);
    execvp(words[end + 1], words + end + 1);
    fprintf(stderr, "clew-mount: %s: %s\n", words[end + 1], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
