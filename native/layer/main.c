/*
 * clew-layer DEVICE ROOT LOG SECONDS [PROCESS]
 *
 * The first three are descriptors: an opened /dev/fuse, the directory to show, and a pipe for
 * records. SECONDS is how long the kernel may remember names and attributes.
 *
 * PROCESS is a descriptor of the first process of the container, for a layer without privileges: it
 * passes data itself, opens files through their directories, and ends with that process, when
 * everything that the kernel reported was read.
 */
#include "requests.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int main(int count, char **words)
{
    if (count < 5) {
        fprintf(stderr, "usage: clew-layer DEVICE ROOT LOG SECONDS [PROCESS]\n");
        return 2;
    }
    int process = count > 5 ? atoi(words[5]) : -1;
    int device = atoi(words[1]);
    signal(SIGPIPE, SIG_IGN);
    umask(0);
    log_begin(atoi(words[3]));
    answers_begin(device, strtoull(words[4], NULL, 10));
    users_begin();
    int error = nodes_begin(atoi(words[2]), process < 0);
    if (!error)
        error = serve(device, process);
    if (error)
        fprintf(stderr, "clew-layer: %s\n", strerror(-error));
    return error ? 1 : 0;
}
