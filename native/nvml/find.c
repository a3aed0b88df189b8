/* The search list: the first place that has an image file decides, whatever the file then turns out to be.
 *
 * SIMNODE_IMAGE (a directory or the file itself) excludes all other places. Then `simnode/` beside the library as it
 * was loaded; `../../config/` of the file that it resolves to; `/etc/simnode/`. Inside the static nvidia-smi there is
 * no loaded library: there the loader's usual directories and the program's own file stand for it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image.h"
#include "rules.h"

#define MAX_PATH PATH_MAX

/* Where loaders look without being told, most common first. */
static const char *const library_directories[] = {
#if defined(__aarch64__)
    "/usr/lib/aarch64-linux-gnu",
#else
    "/usr/lib/x86_64-linux-gnu",
#endif
    "/usr/lib64",
    "/usr/lib",
    "/lib64",
    "/lib",
};

/* Joins three parts into `out`, MAX_PATH bytes; false if they do not fit. */
static bool join(char *out, const char *directory, size_t directory_length, const char *rest)
{
    size_t rest_length = strlen(rest);

    if (directory_length + rest_length + 1 > MAX_PATH)
        return false;
    memmove(out, directory, directory_length);
    memcpy(out + directory_length, rest, rest_length + 1);
    return true;
}

/* Bytes of the path up to and including its last slash. */
static size_t directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

static int open_file(const char *path)
{
    int file;

    do
        file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (file < 0 && errno == EINTR);
    return file;
}

static int open_beside(const char *path, const char *rest)
{
    char candidate[MAX_PATH];

    return join(candidate, path, directory_of(path), rest) ? open_file(candidate) : -1;
}

static int open_named(const char *name)
{
    char candidate[MAX_PATH];
    int file = -1;

    if (join(candidate, name, strlen(name), "/" SN_IMAGE_NAME))
        file = open_file(candidate);
    return file < 0 && errno == ENOTDIR ? open_file(name) : file;
}

struct own_file {
    uintptr_t address;
    char name[MAX_PATH];
};

/* Remembers the name of the loaded object that this code is part of; empty for the program itself. */
static int match_object(struct dl_phdr_info *object, size_t size, void *data)
{
    struct own_file *own = data;

    (void)size;
    for (unsigned int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;

        if (segment->p_type != PT_LOAD || own->address - start >= segment->p_memsz)
            continue;
        if (object->dlpi_name == NULL || !join(own->name, "", 0, object->dlpi_name))
            own->name[0] = '\0';
        return 1;
    }
    return 0;
}

static int open_beside_library(const char *name)
{
    char resolved[MAX_PATH];
    int file = open_beside(name, "simnode/" SN_IMAGE_NAME);

    if (file < 0 && realpath(name, resolved) != NULL)
        file = open_beside(resolved, "../../config/" SN_IMAGE_NAME);
    return file;
}

static int open_for_program(void)
{
    char candidate[MAX_PATH];
    char program[MAX_PATH];
    ssize_t length;
    int file = -1;

    for (size_t i = 0; file < 0 && i < sizeof(library_directories) / sizeof(library_directories[0]); i++) {
        const char *directory = library_directories[i];
        if (join(candidate, directory, strlen(directory), "/simnode/" SN_IMAGE_NAME))
            file = open_file(candidate);
    }
    if (file >= 0)
        return file;
    length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length <= 0)
        return -1;
    program[length] = '\0';
    return open_beside(program, "../../config/" SN_IMAGE_NAME);
}

int sn_open_image(void)
{
    const char *named = secure_getenv("SIMNODE_IMAGE");
    struct own_file own = {.address = (uintptr_t)&sn_open_image, .name = ""};
    int file;

    if (named != NULL && named[0] != '\0')
        return open_named(named);
    dl_iterate_phdr(match_object, &own);
    file = strchr(own.name, '/') != NULL ? open_beside_library(own.name) : open_for_program();
    return file < 0 ? open_file("/etc/simnode/" SN_IMAGE_NAME) : file;
}

/* Maps the open file if it is an image of ours. The device and inode tell it from the one mapped before. */
static nvmlReturn_t map(int file, const struct sn_image **image)
{
    static struct stat known;
    static const struct sn_image *mapped;
    struct stat status;
    struct sn_header header;
    const struct sn_image *fresh;

    if (syscall(SYS_fstat, file, &status) != 0 || !S_ISREG(status.st_mode))
        return NVML_ERROR_DRIVER_NOT_LOADED;
    if (pread(file, &header, sizeof(header), 0) != (ssize_t)sizeof(header) || header.magic != SN_MAGIC)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    if (header.format != SN_FORMAT || header.slot_bytes != sizeof(struct sn_slot) ||
        header.image_bytes != sizeof(struct sn_image))
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    if (header.done == 0 || status.st_size < (off_t)sizeof(struct sn_image))
        return NVML_ERROR_DRIVER_NOT_LOADED;
    if (mapped == NULL || known.st_dev != status.st_dev || known.st_ino != status.st_ino) {
        fresh = mmap(NULL, sizeof(struct sn_image), PROT_READ, MAP_SHARED, file, 0);
        if (fresh == MAP_FAILED)
            return NVML_ERROR_MEMORY;
        mapped = fresh;
        known = status;
    }
    *image = mapped;
    return NVML_SUCCESS;
}

nvmlReturn_t sn_find_image(const struct sn_image **image, int *file)
{
    nvmlReturn_t code;

    *file = sn_open_image();
    if (*file < 0)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    code = map(*file, image);
    if (code != NVML_SUCCESS)
        close(*file);
    return code;
}
