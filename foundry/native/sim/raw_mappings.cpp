// In a build with ThreadSanitizer the simulator's mappings take this way: the sanitizer's own moves a wish that lies
// where it keeps its books. Calls of the functions come here by --wrap.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    return reinterpret_cast<void *>(syscall(SYS_mmap, address, size, protection, flags, file, offset));
}

int __wrap_munmap(void *address, size_t size) {
    return static_cast<int>(syscall(SYS_munmap, address, size));
}

int __wrap_mprotect(void *address, size_t size, int protection) {
    return static_cast<int>(syscall(SYS_mprotect, address, size, protection));
}

} // extern "C"
