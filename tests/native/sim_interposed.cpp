// environment: LD_PRELOAD=@interposer@
// With another cuMemAlloc_v2 preloaded in front, cuGetProcAddress still gives the simulator's own.
#include "sim_test.h"

#include <dlfcn.h>

int main() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(library);
    void *own = dlsym(library, "cuMemAlloc_v2"), *answer = nullptr;
    REQUIRE(own && own != dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    CHECK(cuGetProcAddress_v2("cuMemAlloc", &answer, 13000, 0, nullptr));
    REQUIRE(answer == own);
    REQUIRE(dlsym(library, "foundry_sim_version"));
}
