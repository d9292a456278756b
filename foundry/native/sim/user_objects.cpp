// User objects: what graphs keep alive for the program. The destructor runs when the last reference goes.
#include "graph.h"

namespace sim {
namespace {

CUresult find_object(CUuserObject handle, UserObject **object) {
    *object = graph_registry().user_objects.find(handle);
    return *object ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult release(CUuserObject handle, std::uint64_t count) {
    UserObject *object = nullptr;
    SIM_TRY(find_object(handle, &object));
    if (count == 0 || count > object->references) return CUDA_ERROR_INVALID_VALUE;
    object->references -= count;
    if (object->references != 0) return CUDA_SUCCESS;
    CUhostFn destroy = object->destroy;
    void *pointer = object->pointer;
    graph_registry().user_objects.remove(handle);
    Unlocked unlocked;
    destroy(pointer);
    return CUDA_SUCCESS;
}

} // namespace

Graph::~Graph() {
    for (auto [object, count] : user_objects) release(object, count);
}

} // namespace sim

using sim::Graph;
using sim::UserObject;

CUresult sim::cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount,
                                 unsigned int flags) {
    if (!object_out || !destroy || initialRefcount == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    auto object = std::make_shared<UserObject>();
    object->pointer = ptr;
    object->destroy = destroy;
    object->references = initialRefcount;
    *object_out = graph_registry().user_objects.add(object);
    return CUDA_SUCCESS;
}

CUresult sim::cuUserObjectRetain(CUuserObject object, unsigned int count) {
    UserObject *known = nullptr;
    SIM_TRY(find_object(object, &known));
    if (count == 0) return CUDA_ERROR_INVALID_VALUE;
    known->references += count;
    return CUDA_SUCCESS;
}

CUresult sim::cuUserObjectRelease(CUuserObject object, unsigned int count) {
    return release(object, count);
}

CUresult sim::cuGraphRetainUserObject(CUgraph handle, CUuserObject object, unsigned int count, unsigned int flags) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(handle, &graph));
    UserObject *known = nullptr;
    SIM_TRY(find_object(object, &known));
    if (count == 0 || flags > CU_GRAPH_USER_OBJECT_MOVE) return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_GRAPH_USER_OBJECT_MOVE) known->references += count;
    graph->user_objects[object] += count;
    return CUDA_SUCCESS;
}

CUresult sim::cuGraphReleaseUserObject(CUgraph handle, CUuserObject object, unsigned int count) {
    Graph *graph = nullptr;
    SIM_TRY(find_graph(handle, &graph));
    auto held = graph->user_objects.find(object);
    if (held == graph->user_objects.end() || count == 0 || count > held->second) return CUDA_ERROR_INVALID_VALUE;
    held->second -= count;
    if (held->second == 0) graph->user_objects.erase(held);
    return release(object, count);
}
