// Which threads allocate in the main arena, when they came and that they ended: what is known of the order in which two
// threads' allocations must happen. The rest may come in another order in the next run, and then lie elsewhere.
#ifndef FOUNDRY_HOOK_ALLOCATORS_H
#define FOUNDRY_HOOK_ALLOCATORS_H

namespace foundry {

// Around the ALLOCATION frame of the main arena, by the thread that allocates. Costs a look at /proc for the
// first few thousand, and a few more where another thread allocated last.
void allocator_begins();
void allocator_ended();
void allocators_forget();

} // namespace foundry

#endif
