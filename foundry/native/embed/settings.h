// What foundry_embed_restore was told. Written once, before the program's first driver call.
#ifndef FOUNDRY_EMBED_SETTINGS_H
#define FOUNDRY_EMBED_SETTINGS_H

namespace foundry::embed {

struct Asked {
    char image[4096];
    char report[4096];
};
extern Asked asked;

} // namespace foundry::embed

#endif
