// The parts of the C++ runtime that containers need, without exceptions: the library then has no constructors of its
// own, needs libc only, and shares no allocator state with the program's C++ runtime.
//
// Contract: host memory that has run out ends the process, as an uncaught std::bad_alloc through a C function would.
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <new>

#if __has_include(<sys/single_threaded.h>)
// What shared pointers ask before they count: this process has threads of its program's making.
extern "C" {
char __libc_single_threaded = 0;
}
#endif

#if __GLIBC_PREREQ(2, 33)
// The C library's own is newer than the library may need.
extern "C" int fstat(int file, struct stat *status) noexcept {
    return static_cast<int>(syscall(SYS_fstat, file, status));
}
#endif

void *operator new(size_t size) {
    void *memory = malloc(size ? size : 1);
    if (!memory) abort();
    return memory;
}
void *operator new[](size_t size) {
    return operator new(size);
}
void *operator new(size_t size, const std::nothrow_t &) noexcept {
    return malloc(size ? size : 1);
}
void *operator new[](size_t size, const std::nothrow_t &) noexcept {
    return malloc(size ? size : 1);
}
void *operator new(size_t size, std::align_val_t alignment) {
    void *memory = nullptr;
    if (posix_memalign(&memory, static_cast<size_t>(alignment), size ? size : 1) != 0) abort();
    return memory;
}
void operator delete(void *memory) noexcept {
    free(memory);
}
void operator delete[](void *memory) noexcept {
    free(memory);
}
void operator delete(void *memory, size_t) noexcept {
    free(memory);
}
void operator delete[](void *memory, size_t) noexcept {
    free(memory);
}
void operator delete(void *memory, std::align_val_t) noexcept {
    free(memory);
}
void operator delete(void *memory, size_t, std::align_val_t) noexcept {
    free(memory);
}

namespace std {

// The library's own comes with code that chooses between atomics in a constructor (aarch64).
const nothrow_t nothrow{};

#define FOUNDRY_THROW(name, ...)                                                                                       \
    void name(__VA_ARGS__) {                                                                                           \
        abort();                                                                                                       \
    }
FOUNDRY_THROW(__throw_bad_alloc)
FOUNDRY_THROW(__throw_bad_array_new_length)
FOUNDRY_THROW(__throw_bad_function_call)
FOUNDRY_THROW(__throw_length_error, const char *)
FOUNDRY_THROW(__throw_logic_error, const char *)
FOUNDRY_THROW(__throw_out_of_range, const char *)
FOUNDRY_THROW(__throw_out_of_range_fmt, const char *, ...)
FOUNDRY_THROW(__throw_system_error, int)
#undef FOUNDRY_THROW

condition_variable::condition_variable() noexcept = default;
condition_variable::~condition_variable() noexcept = default;
void condition_variable::notify_one() noexcept {
    _M_cond.notify_one();
}
void condition_variable::notify_all() noexcept {
    _M_cond.notify_all();
}
void condition_variable::wait(unique_lock<mutex> &lock) {
    if (lock.owns_lock()) _M_cond.wait(*lock.mutex());
}

} // namespace std
