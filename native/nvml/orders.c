/* One request, one answer, each a line of JSON, over the control socket that lies beside the image's node.
 *
 * The node root has driver/config/ with the image and control/ with the socket. A container has the image only. */
#define _GNU_SOURCE
#include "orders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "deadline.h"
#include "image.h"

#define MAX_PATH 4096
#define MAX_REQUEST 4096
#define MAX_ANSWER 4096
#define CONTROL "../../control"
#define SOCKET "agent.sock"
#define PATIENCE_S 30

/* The control directory beside the image's, as a descriptor: an address has no room for a long path. -1 without. */
static int open_control(void)
{
    char link[64];
    char path[MAX_PATH];
    ssize_t length;
    int image = sn_open_image();

    if (image < 0)
        return -1;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", image);
    length = readlink(link, path, sizeof(path) - sizeof(CONTROL));
    close(image);
    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length <= 0)
        return -1;
    memcpy(path + length, CONTROL, sizeof(CONTROL));
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* True if a call failed for nothing but a signal, and there is time for another. */
static bool was_interrupted(const struct timespec *deadline)
{
    return errno == EINTR && !sn_is_past(deadline);
}

/* What a call that failed for no signal says: the agent took too long, or `otherwise`. */
static nvmlReturn_t failure(nvmlReturn_t otherwise)
{
    return errno == EAGAIN || errno == EINTR ? NVML_ERROR_TIMEOUT : otherwise;
}

/* Connects to the agent. Every wait on the connection has an end, this one, for an agent that takes nobody in, too. */
static nvmlReturn_t connect_agent(const struct timespec *deadline, int *connection)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int directory = open_control();
    nvmlReturn_t code = NVML_SUCCESS;

    if (directory < 0)
        return NVML_ERROR_NO_PERMISSION;
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" SOCKET, directory);
    *connection = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*connection < 0 ||
        syscall(SYS_setsockopt, *connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
        syscall(SYS_setsockopt, *connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0)
        code = NVML_ERROR_NO_PERMISSION;
    while (code == NVML_SUCCESS && syscall(SYS_connect, *connection, &address, sizeof(address)) != 0)
        if (!was_interrupted(deadline))
            code = failure(NVML_ERROR_NO_PERMISSION);
    if (code != NVML_SUCCESS && *connection >= 0)
        close(*connection);
    close(directory);
    return code;
}

static bool contains(const char *text, const char *part)
{
    size_t length = strlen(part);

    for (; *text != '\0'; text++)
        if (strncmp(text, part, length) == 0)
            return true;
    return false;
}

/* Sends the whole request and reads the answer's line, or as much of it as there is room for. */
static nvmlReturn_t converse(int connection, const char *request, char answer[MAX_ANSWER],
                             const struct timespec *deadline)
{
    size_t left = strlen(request);
    size_t got = 0;

    while (left > 0) {
        long sent = syscall(SYS_sendto, connection, request, left, MSG_NOSIGNAL, NULL, 0);
        if (sent > 0) {
            request += sent;
            left -= (size_t)sent;
        } else if (!was_interrupted(deadline)) {
            return failure(NVML_ERROR_UNKNOWN);
        }
    }
    while (got + 1 < MAX_ANSWER && memchr(answer, '\n', got) == NULL) {
        ssize_t more = read(connection, answer + got, MAX_ANSWER - 1 - got);
        if (more > 0)
            got += (size_t)more;
        else if (more == 0)
            return NVML_ERROR_UNKNOWN; /* the agent went away */
        else if (!was_interrupted(deadline))
            return failure(NVML_ERROR_UNKNOWN);
    }
    answer[got] = '\0';
    return NVML_SUCCESS;
}

nvmlReturn_t sn_may_order(void)
{
    struct timespec deadline = sn_deadline_after(PATIENCE_S * 1000);
    int connection;
    nvmlReturn_t code = connect_agent(&deadline, &connection);

    if (code == NVML_SUCCESS)
        close(connection);
    return code;
}

/* Of a UUID only what needs no quoting in JSON. */
static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
            return false;
    return true;
}

static nvmlReturn_t order(nvmlDevice_t device, const char *verb, const char *list, const char *items)
{
    char uuid[SN_LONGEST_TEXT + 1];
    char request[MAX_REQUEST];
    char answer[MAX_ANSWER];
    struct timespec deadline = sn_deadline_after(PATIENCE_S * 1000);
    int connection;
    nvmlReturn_t code = sn_get_text(device, offsetof(struct sn_device, uuid),
                                    sizeof(((struct sn_device *)0)->uuid.value), uuid, sizeof(uuid));

    if (code != NVML_SUCCESS)
        return code;
    if (!is_plain(uuid) ||
        (size_t)snprintf(request, sizeof(request), "{\"verb\":\"%s\",\"gpu\":\"%s\",\"%s\":[%s]}\n", verb, uuid, list,
                         items) >= sizeof(request))
        return NVML_ERROR_UNKNOWN;
    code = connect_agent(&deadline, &connection);
    if (code != NVML_SUCCESS)
        return code;
    code = converse(connection, request, answer, &deadline);
    close(connection);
    if (code != NVML_SUCCESS)
        return code;
    if (contains(answer, "\"ok\":true"))
        return NVML_SUCCESS;
    if (contains(answer, "may not control this node"))
        return NVML_ERROR_NO_PERMISSION;
    return contains(answer, "\"code\":2") ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNKNOWN;
}

nvmlReturn_t sn_order_set(nvmlDevice_t device, const char *assignments)
{
    return order(device, "set", "assignments", assignments);
}

nvmlReturn_t sn_order_reset(nvmlDevice_t device, const char *keys)
{
    return order(device, "reset", "keys", keys);
}
