/* Polls under strict seccomp: the kernel kills whoever makes any system call but read, write and exit. */
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    int (*init)(void);
    int (*by_index)(unsigned int, void **);
    int (*utilization)(void *, unsigned int *);
    int (*temperature)(void *, unsigned int, unsigned int *);
    unsigned int value[2];
    void *device;
    int code;

    if (library == NULL)
        return 2;
    init = (int (*)(void))dlsym(library, "nvmlInit_v2");
    by_index = (int (*)(unsigned int, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    utilization = (int (*)(void *, unsigned int *))dlsym(library, "nvmlDeviceGetUtilizationRates");
    temperature = (int (*)(void *, unsigned int, unsigned int *))dlsym(library, "nvmlDeviceGetTemperature");
    code = init() | by_index(0, &device) | temperature(device, 0, value);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    for (int i = 0; i < 100000; i++)
        code |= by_index(0, &device) | utilization(device, value) | temperature(device, 0, value);
    syscall(SYS_exit, code);
    __builtin_unreachable();
}
