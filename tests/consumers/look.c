/* What a static Go or C program sees of the node: the NVIDIA devices that open, and the driver's version. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    DIR *devices = opendir("/dev");
    if (devices == NULL) {
        perror("/dev");
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(devices)) != NULL;) {
        struct stat status;
        if (strncmp(entry->d_name, "nvidia", 6) != 0) {
            continue;
        }
        if (fstatat(dirfd(devices), entry->d_name, &status, 0) != 0 || !S_ISCHR(status.st_mode)) {
            printf("%s is no character device\n", entry->d_name);
            return 1;
        }
        printf("%s\n", entry->d_name);
    }
    closedir(devices);

    char text[512];
    int version = open("/proc/driver/nvidia/version", O_RDONLY);
    ssize_t length = version < 0 ? -1 : read(version, text, sizeof text);
    if (length < 0) {
        perror("/proc/driver/nvidia/version");
        return 1;
    }
    fwrite(text, 1, (size_t)length, stdout);
    return 0;
}
