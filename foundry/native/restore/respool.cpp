#include "respool.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "../hook/contents.h"
#include "../hook/counters.h"
#include "../hook/exec_table.h"
#include "../hook/images.h"
#include "../hook/placement.h"
#include "../hook/spool.h"

namespace foundry::restore {

// What a driver tells of the flags that an exec was instantiated with. Not the use of node priorities, which drivers of
// CUDA 13 take but do not tell; nor the upload, which the program's call asked for and the engine's does not.
constexpr cuuint64_t told_flags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;

Respool::Respool(Session &session)
    : session_(session), records_(session.graphs.size()), images_told_(session.images.size()) {}

void Respool::image_ready(uint32_t image, void *handle, CUcontext context) {
    // Others the driver unloads with the program's last reference.
    if (session_.images[image].in_graphs) image_held(reinterpret_cast<uint64_t>(handle), context);
}

void Respool::kernel_ready(uint32_t kernel, const KernelState &loaded) {
    const uint32_t image = session_.image_of(kernel);
    void *of;
    {
        std::lock_guard<std::mutex> lock(session_.mutex);
        const ImageState &state = session_.images[image];
        of = state.library ? static_cast<void *>(state.library) : state.module;
    }
    const void *handle = loaded.kernel ? static_cast<const void *>(loaded.kernel) : loaded.function;
    kernel_seen(handle, reinterpret_cast<uint64_t>(of), session_.image->string(session_.image->kernels()[kernel].name));
}

void Respool::event_made(CUevent event, uint32_t flags) {
    Frame(FOUNDRY_EVENT_EVENT_CREATED).handle(event).u32(flags).write();
    // The program never has its handle.
    Frame(FOUNDRY_EVENT_EVENT_GONE).handle(event).write();
}

void Respool::graph_built(uint32_t graph, CUgraph built, CUgraphExec exec) {
    const auto &entry = session_.image->graphs()[graph];
    cuuint64_t flags = 0;
    if (drive(real.cuGraphExecGetFlags, exec, &flags)) flags = entry.instantiate_flags;
    flags = (flags & told_flags) | (entry.instantiate_flags & ~told_flags);
    auto record = std::make_unique<GraphRecord>(built, exec, flags, session_.image->string(entry.set),
                                                session_.image->string(entry.key));
    std::lock_guard<std::mutex> lock(mutex_);
    records_[graph] = std::move(record);
}

void Respool::image_given(void *handle) {
    uint32_t image;
    {
        std::lock_guard<std::mutex> lock(session_.mutex);
        auto known = session_.image_handles.find(handle);
        if (known == session_.image_handles.end()) return;
        image = known->second;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    tell_image(image);
}

void Respool::tell_image(uint32_t image) {
    if (images_told_[image]) return;
    images_told_[image] = true;
    void *handle;
    CUcontext context;
    {
        std::lock_guard<std::mutex> lock(session_.mutex);
        const ImageState &state = session_.images[image];
        handle = state.library ? static_cast<void *>(state.library) : state.module;
        context = state.context;
    }
    const Image &archive = *session_.image;
    const auto &entry = archive.images()[image];
    const auto &blob = archive.blobs()[entry.blob];
    ImageLoad load;
    for (const auto &option : archive.image_options().subspan(entry.first_option, entry.option_count))
        load.options.push_back({static_cast<CUjit_option>(option.option), option.value});
    load.bytes = image_bytes(archive.blob_bytes().data() + blob.offset);
    load.bytes.size = blob.length;
    memcpy(load.key, entry.key, sizeof load.key);
    snprintf(load.provenance.path, sizeof load.provenance.path, "%s", archive.string(entry.provenance));
    image_restored(reinterpret_cast<uint64_t>(handle), static_cast<int>(entry.api), load,
                   entry.api == FOUNDRY_API_MODULE ? context : nullptr, entry.instance);
}

// Of allocations that overlap, one lived after the other.
void Respool::tell_allocation(uint32_t allocation) {
    const auto &entries = session_.image->allocations();
    const auto &wanted = entries[allocation];
    const uint64_t taken = Placement::taken_for(wanted.size);
    auto other = allocations_.lower_bound(wanted.address);
    if (other != allocations_.end() && other->second == allocation) return;
    if (other != allocations_.begin()) {
        auto before = std::prev(other);
        if (wanted.address - before->first < Placement::taken_for(entries[before->second].size)) other = before;
    }
    while (other != allocations_.end() && other->first < wanted.address + taken) {
        const auto &ended = entries[other->second];
        Frame(FOUNDRY_EVENT_FREE).u64(ended.address).u32(ended.device).u8(FOUNDRY_ARENA_GRAPH).write();
        other = allocations_.erase(other);
    }
    Frame(FOUNDRY_EVENT_ALLOCATION)
        .u64(wanted.address)
        .u64(wanted.size)
        .u64(taken)
        .u32(wanted.device)
        .u8(FOUNDRY_ARENA_GRAPH)
        .u8(FOUNDRY_ORIGIN_PLAIN)
        .u64(allocations_told_++)
        .write();
    allocations_[wanted.address] = allocation;
    tell_contents(wanted);
}

// What the engine filled it with.
void Respool::tell_contents(const foundry_image_allocation &allocation) {
    const Image &archive = *session_.image;
    std::vector<uint8_t> bytes;
    for (const auto &mapping : archive.mappings()) {
        if (mapping.contents == FOUNDRY_NONE || mapping.device != allocation.device) continue;
        const auto &blob = archive.blobs()[mapping.contents];
        const uint64_t first = mapping.address + mapping.contents_offset;
        const uint64_t begin = std::max(first, allocation.address);
        const uint64_t end = std::min(first + blob.length, allocation.address + allocation.size);
        if (begin >= end) continue;
        bytes.resize(allocation.size);
        memcpy(bytes.data() + (begin - allocation.address), archive.blob_bytes().data() + blob.offset + (begin - first),
               end - begin);
    }
    if (!bytes.empty()) contents_tell(allocation.address, bytes.data(), bytes.size());
}

void Respool::graph_given(uint32_t graph) {
    const Image &archive = *session_.image;
    const auto &entry = archive.graphs()[graph];
    CUgraphExec exec;
    {
        std::lock_guard<std::mutex> lock(session_.mutex);
        if (session_.graphs[graph].work != Work::ready) return;
        exec = session_.graphs[graph].exec;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    auto record = std::move(records_[graph]);
    if (!record) return;
    for (uint32_t kernel : session_.groups[entry.group].kernels) tell_image(session_.image_of(kernel));
    for (uint32_t at : archive.references().subspan(entry.first_reference, entry.reference_count))
        if (archive.allocations()[at].restored) tell_allocation(at);
    exec_add(exec);
    if (record->write()) count(counters.graphs_recorded);
    const char *metadata = archive.string(entry.metadata);
    if (*metadata)
        Frame(FOUNDRY_EVENT_GRAPH_METADATA)
            .str(archive.string(entry.set))
            .str(archive.string(entry.key))
            .str(metadata)
            .write();
}

void Respool::graph_taken_back(uint32_t graph, const Reason &reason) {
    CUgraphExec exec;
    {
        std::lock_guard<std::mutex> lock(session_.mutex);
        exec = session_.graphs[graph].exec;
    }
    if (exec && exec_first_change(exec))
        Frame(FOUNDRY_EVENT_EXEC_CHANGED).handle(exec).str(("given up: " + reason).c_str()).write();
}

void Respool::rest() {
    for (uint32_t graph = 0; graph < records_.size(); graph++) {
        if (!*session_.image->string(session_.image->graphs()[graph].set)) continue;
        {
            std::lock_guard<std::mutex> lock(session_.mutex);
            const GraphState &state = session_.graphs[graph];
            if (state.work != Work::ready || state.told) continue;
        }
        if (session_.check_references(graph).empty()) graph_given(graph);
    }
}

} // namespace foundry::restore
