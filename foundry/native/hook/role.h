// The name by which a process is found again: its rank, or what `multiprocessing` calls it, or both; else its
// executable, with a digest of its arguments if it is not the command itself. Of several such, the order of first use.
#ifndef FOUNDRY_HOOK_ROLE_H
#define FOUNDRY_HOOK_ROLE_H

#include <stddef.h>

#include <string>

namespace foundry {

// Makes `<session>/<role>` by mkdir, which is what claims the role among processes. 0, or an errno. `beside`: the role
// of another process that lives and has the same rank, name and arguments, so that nothing tells which of them this is.
int role_claim(const char *session, char *role, size_t role_size, char *folder, size_t folder_size,
               std::string &beside);

// Makes a role free again for the program that this process becomes; its folder must hold nothing of others.
void role_give_back(const char *folder);

// The role of a process that is the first of its rank or executable; nothing is claimed.
void role_expected(char *role, size_t size);

// Base name of the running executable, "unknown" if it cannot be read.
void executable_name(char *name, size_t size);

// The variables that may be kept, by index; null past the end.
const char *kept_variable(unsigned index);

} // namespace foundry

#endif
