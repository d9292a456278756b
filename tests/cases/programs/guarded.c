/* Loads the image argv[1] from memory that ends where it ends and cannot be written, in every way there is. */
#define _GNU_SOURCE
#include "program.h"

#include <sys/mman.h>
#include <sys/stat.h>

int main(int count, char **arguments) {
    struct stat status;
    CUlibrary library;
    CUmodule module;
    if (count < 2) return 2;
    FILE *file = fopen(arguments[1], "rb");
    if (!file || fstat(fileno(file), &status)) return 2;
    size_t size = (size_t)status.st_size, pages = (size + 4095) / 4096 * 4096;
    char *place = mmap(NULL, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *image = place + ((pages - size) & ~(size_t)7); /* as aligned as an image must be */
    if (fread(image, 1, size, file) != size) return 2;
    mprotect(place, pages, PROT_READ);
    mprotect(place + pages, 4096, PROT_NONE);
    primary_context();
    SAY("program %p", (void *)image);
    MUST(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuModuleLoadData(&module, image));
    MUST(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
    MUST(cuModuleLoadFatBinary(&module, image));
    SAY("loaded");
    return 0;
}
