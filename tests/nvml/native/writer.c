/*
 * writer IMAGE BLOBS COUNT BOOT_ID: publishes the COUNT encoded nodes in the file BLOBS in turn, without pause, until it
 * is killed. It goes on where the image left off, so that whoever takes over publishes something else next.
 */
#include "pairs.h"

#include <sys/stat.h>

int main(int argc, char **argv)
{
    struct stat status;
    struct sn_image *image;
    const char *blobs;
    size_t count;

    if (argc != 5 || stat(argv[2], &status) != 0)
        return 2;
    image = map_file(argv[1], sizeof(*image), 1);
    count = strtoul(argv[3], NULL, 10);
    blobs = map_file(argv[2], (size_t)status.st_size, 0);
    if (sn_publish_open(image) != 0)
        return 3;
    for (uint64_t n = sn_done(image);; n++)
        publish_blob(image, blobs + n % count * ((size_t)status.st_size / count), argv[4]);
}
