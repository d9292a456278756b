// What the files of the unit tests share.
#ifndef FOUNDRY_TESTS_HOOK_UNIT_H
#define FOUNDRY_TESTS_HOOK_UNIT_H

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::printf("line %d: %s\n", __LINE__, #condition);                                                        \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (false)

void test_placement();
void test_claims();

#endif
