/* Reads every GPU's temperature through libnvidia-ml.so.1, with nothing from any header of NVML. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
    int (*count_of)(unsigned *) = (int (*)(unsigned *))dlsym(library, "nvmlDeviceGetCount_v2");
    int (*by_index)(unsigned, void **) = (int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    int (*temperature)(void *, unsigned, unsigned *) =
        (int (*)(void *, unsigned, unsigned *))dlsym(library, "nvmlDeviceGetTemperature");
    unsigned count = 0;
    if (init() != 0 || count_of(&count) != 0) {
        return 1;
    }
    for (unsigned index = 0; index < count; index++) {
        void *gpu;
        unsigned celsius;
        if (by_index(index, &gpu) != 0 || temperature(gpu, 0, &celsius) != 0) {
            return 1;
        }
        printf("%u\n", celsius);
    }
    return 0;
}
