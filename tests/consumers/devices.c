/* Lists the devices of libcuda.so.1, with nothing from any header of CUDA: name, UUID, bytes and bus, one a line. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*count_of)(int *) = (int (*)(int *))dlsym(library, "cuDeviceGetCount");
    int (*get)(int *, int) = (int (*)(int *, int))dlsym(library, "cuDeviceGet");
    int (*name_of)(char *, int, int) = (int (*)(char *, int, int))dlsym(library, "cuDeviceGetName");
    int (*uuid_of)(unsigned char *, int) = (int (*)(unsigned char *, int))dlsym(library, "cuDeviceGetUuid");
    int (*memory_of)(size_t *, int) = (int (*)(size_t *, int))dlsym(library, "cuDeviceTotalMem_v2");
    int (*bus_of)(char *, int, int) = (int (*)(char *, int, int))dlsym(library, "cuDeviceGetPCIBusId");
    int count = 0;
    int code = init(0);
    if (code != 0 || count_of(&count) != 0) {
        fprintf(stderr, "cuInit: %d\n", code);
        return 1;
    }
    for (int ordinal = 0; ordinal < count; ordinal++) {
        char name[96], bus[13];
        unsigned char uuid[16];
        size_t bytes;
        int device;
        if (get(&device, ordinal) != 0 || name_of(name, sizeof name, device) != 0 || uuid_of(uuid, device) != 0 ||
            memory_of(&bytes, device) != 0 || bus_of(bus, sizeof bus, device) != 0) {
            return 1;
        }
        printf("%s, ", name);
        for (int i = 0; i < 16; i++) {
            printf("%02x", uuid[i]);
        }
        printf(", %zu, %s\n", bytes, bus);
    }
    return 0;
}
