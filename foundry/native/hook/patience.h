// How long a thread of the program waits for another thread's driver call, and where it stops to believe in it.
#ifndef FOUNDRY_HOOK_PATIENCE_H
#define FOUNDRY_HOOK_PATIENCE_H

#include <chrono>

namespace foundry {

// FOUNDRY_PATIENCE in seconds, else a minute. Read once.
std::chrono::milliseconds patience();

// Lets others run. False when the patience that began with this object is over.
class Turns {
  public:
    bool next();

  private:
    std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + patience();
};

} // namespace foundry

#endif
