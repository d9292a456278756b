/* By which door comes which library's function? `name door library`, for all four doors and for what must not be
 * touched. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>

static const char *library_of(void *address) {
    Dl_info info;
    if (!address) return "none";
    if (!dladdr(address, &info)) return "unknown";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static void ask(const char *door, const char *name, void *address) {
    SAY("%s %s %s", name, door, library_of(address));
}

int main(void) {
    static const char *names[] = {"cuMemAlloc_v2",       "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuGetProcAddress",
                                  "cuGetProcAddress_v2", "cuGraphLaunch",  "cuDeviceGet",         "cuFooBarNotThere",
                                  "cudnnCreate",         "cuda_something"};
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    for (unsigned index = 0; index < sizeof names / sizeof *names; ++index) {
        ask("handle", names[index], dlsym(handle, names[index]));
        ask("default", names[index], dlsym(RTLD_DEFAULT, names[index]));
        ask("next", names[index], dlsym(RTLD_NEXT, names[index]));
    }
    ask("direct", "cuMemAlloc_v2", (void *)cuMemAlloc);

    static const char *bases[] = {"cuMemAlloc",
                                  "cuLaunchKernel",
                                  "cuGetProcAddress",
                                  "cuGraphInstantiate",
                                  "cuStreamBeginCapture",
                                  "cuDeviceGet",
                                  ""};
    static const int versions[] = {11000, 12000, 12050, 13000};
    CUresult (*first)(const char *, void **, int, cuuint64_t) =
        (CUresult (*)(const char *, void **, int, cuuint64_t))dlsym(handle, "cuGetProcAddress");
    for (unsigned base = 0; base < sizeof bases / sizeof *bases; ++base)
        for (unsigned version = 0; version < 4; ++version)
            for (cuuint64_t flags = 0; flags < 3; ++flags) {
                void *old = (void *)1, *now = (void *)2, *quiet = (void *)3;
                CUdriverProcAddressQueryResult status;
                CUresult result = first(bases[base], &old, versions[version], flags);
                CUresult again = cuGetProcAddress(bases[base], &now, versions[version], flags, &status);
                CUresult without = cuGetProcAddress(bases[base], &quiet, versions[version], flags, NULL);
                if (old != now || now != quiet || result != again || again != without)
                    SAY("doors disagree on %s", bases[base]);
                if (result == CUDA_SUCCESS)
                    SAY("%s entry-%d-%d %s", *bases[base] ? bases[base] : "(empty)", versions[version], (int)flags,
                        library_of(now));
            }
    SAY("null-out %d", cuGetProcAddress("cuInit", NULL, 12000, 0, NULL));
    SAY("null-name %d", cuGetProcAddress(NULL, &handle, 12000, 0, NULL));
    return 0;
}
