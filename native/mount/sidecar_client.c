/* The connection to the sidecar. Each message is one packet: its kind, a space, a text. */
#include "mount.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_DESCRIPTORS 3
#define MAX_MESSAGE 8192

static int connection = -1;

bool sidecar_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return false;
    strcpy(address.sun_path, path);
    connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return connection >= 0 && connect(connection, (struct sockaddr *)&address, sizeof address) == 0;
}

bool sidecar_ask(const char *kind, const char *text, const int *descriptors, int count)
{
    char message[MAX_MESSAGE], answer[8];
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * MAX_DESCRIPTORS)];
    } control = {0};
    int length = snprintf(message, sizeof message, "%s %s", kind, text);
    if (length < 0 || (size_t)length >= sizeof message)
        return false;
    struct iovec part = {message, (size_t)length};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (count) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * (size_t)count);
    }
    if (sendmsg(connection, &packet, MSG_NOSIGNAL) < 0)
        return false;
    ssize_t got = recv(connection, answer, sizeof answer, 0);
    return got == 2 && !memcmp(answer, "ok", 2);
}

void sidecar_tell_failure(const char *point, const char *step, int error)
{
    char text[MAX_MESSAGE - 64];
    snprintf(text, sizeof text, "%s: %s\n%s", step, strerror(error), point);
    sidecar_ask("failed", text, NULL, 0);
}
