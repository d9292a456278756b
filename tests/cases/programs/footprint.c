/* Says how much memory the driver calls free after each step of a program that allocates. */
#include "program.h"

static void say_free(const char *when) {
    size_t free, total;
    MUST(cuMemGetInfo(&free, &total));
    SAY("%s %zu %zu", when, free, total);
}

int main(void) {
    CUdeviceptr small[10], large;
    primary_context();
    say_free("start");
    for (int index = 0; index < 10; ++index) MUST(cuMemAlloc(&small[index], 100 << 10));
    say_free("small");
    MUST(cuMemAlloc(&large, 64 << 20));
    say_free("large");
    for (int index = 0; index < 10; ++index) MUST(cuMemFree(small[index]));
    MUST(cuMemFree(large));
    say_free("end");
    return 0;
}
