// Whether the embedded engine has the program to itself.
#ifndef FOUNDRY_EMBED_EMBED_H
#define FOUNDRY_EMBED_EMBED_H

namespace foundry::embed {

// False where a hook is preloaded, which then does the work.
bool serves();

// The function of the C interface of that name, the preloaded hook's where there is one; null if there is none.
void *function_named(const char *name);

} // namespace foundry::embed

#endif
