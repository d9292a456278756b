/* The simulator's own kernel image, as `make_image.py` writes it and cuModuleLoadData and its like read it.
 *
 *   foundry_sim_image_header
 *   text      lines, each ended by a line feed:
 *               kernel NAME STATIC_SHARED MAX_DYNAMIC_SHARED PARAMETERS OFFSET:SIZE... [unread OFFSET:SIZE...]
 *               global NAME SIZE
 *   zeros up to elf_offset (a multiple of 16)
 *   an ELF shared object for the host, whose symbols are the kernels and globals
 *
 * `unread` names bytes of the parameters that the kernel never reads, for those who look into images; the simulator
 * itself does not ask. All numbers are little-endian; those in the text are decimal. total_size counts every byte from
 * the magic to the end, so that a reader who has only an address knows how much there is.
 */
#ifndef FOUNDRY_SIM_IMAGE_FORMAT_H
#define FOUNDRY_SIM_IMAGE_FORMAT_H

#include <stdint.h>

#define FOUNDRY_SIM_IMAGE_MAGIC "FDRYSIM1"

struct foundry_sim_image_header {
    char magic[8];
    uint64_t total_size;
    uint32_t text_size;
    uint32_t elf_offset;
};

#endif
