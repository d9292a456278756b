// Tells the spool what a restore has built, as a capture would have, so that the two can be compared. Only with
// FOUNDRY_RESPOOL=1: reading everything back takes time.
//
// A graph is read when it is built, from the CUgraph that its exec is made of, and told when the program gets it: then
// everything that it points to stands. Nobody calls in here with the session's mutex held.
#ifndef FOUNDRY_RESTORE_RESPOOL_H
#define FOUNDRY_RESTORE_RESPOOL_H

#include "../hook/graph_record.h"
#include "session.h"

namespace foundry::restore {

class Respool {
  public:
    explicit Respool(Session &session);

    // Before anybody may use them: an image that was loaded by the engine or taken over from the program, a kernel, an
    // event.
    void image_ready(uint32_t image, void *handle, CUcontext context);
    void kernel_ready(uint32_t kernel, const KernelState &loaded);
    void event_made(CUevent event, uint32_t flags);
    // Its context is current.
    void graph_built(uint32_t graph, CUgraph built, CUgraphExec exec);

    void image_given(void *handle);
    void graph_given(uint32_t graph);
    void graph_taken_back(uint32_t graph, const Reason &reason);
    // Named graphs that were built but not asked for.
    void rest();

  private:
    // With the mutex held.
    void tell_image(uint32_t image);
    void tell_allocation(uint32_t allocation);
    void tell_contents(const foundry_image_allocation &allocation);

    Session &session_;
    std::mutex mutex_; // keeps frames together that belong together; never held across a driver call
    std::vector<std::unique_ptr<GraphRecord>> records_;
    std::vector<bool> images_told_;
    std::map<CUdeviceptr, uint32_t> allocations_; // told and standing
    uint64_t allocations_told_ = 0;
};

} // namespace foundry::restore

#endif
