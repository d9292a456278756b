// A CUgraph of a topology group: built once, its nodes rewritten for each further member.
#ifndef FOUNDRY_RESTORE_TEMPLATE_H
#define FOUNDRY_RESTORE_TEMPLATE_H

#include "session.h"

namespace foundry::restore {

// Builds the group with the values of the member whose records begin at `record`, reads it back and compares it.
// The context is current, all kernels of the group are ready. On failure nothing is left in the template.
Reason template_build(Session &session, uint32_t group, uint64_t record, CUcontext context, Template &made);

// Rewrites the nodes that differ from those of the member at `record`, whose group has the same shape. Not for groups
// with child graphs. On failure the template holds a mixture and must be destroyed.
Reason template_rewrite(Session &session, uint32_t group, uint64_t record, Template &held);

void template_destroy(Template &held);

// verify.cpp: compares a built graph with what the image says, node by node and edge by edge.
Reason template_verify(Session &session, uint32_t group, const Template &built);
Reason template_verify_kernel(Session &session, const foundry_image_node &node, const foundry_image_record &record,
                              CUgraphNode handle);
// The attributes that were set, alone.
Reason template_verify_attributes(Session &session, const Template &built);

// The driver's form of one node's values. Pointers in it point into the image and into `pointers`.
CUDA_KERNEL_NODE_PARAMS kernel_parameters(Session &session, const foundry_image_node &node,
                                          const foundry_image_record &record, CUcontext context,
                                          std::vector<void *> &pointers);
CUDA_MEMSET_NODE_PARAMS memset_parameters(const foundry_image_record &record);
// Empty with a reason for a copy that cannot mean the same in another process.
CUDA_MEMCPY3D copy_parameters(Session &session, const foundry_image_record &record, Reason &reason);

} // namespace foundry::restore

#endif
