// SHA-256, with the processor's own instructions where it has them.
#ifndef FOUNDRY_HOOK_SHA256_H
#define FOUNDRY_HOOK_SHA256_H

#include <stddef.h>
#include <stdint.h>

namespace foundry {

class Sha256 {
  public:
    explicit Sha256(bool portable = false);
    void add(const void *data, size_t size);
    void finish(uint8_t digest[32]);

  private:
    uint32_t state_[8];
    uint64_t total_ = 0;
    size_t held_ = 0;
    uint8_t block_[64];
    void (*blocks_)(uint32_t state[8], const uint8_t *data, size_t count);
};

void sha256(const void *data, size_t size, uint8_t digest[32]);

} // namespace foundry

#endif
