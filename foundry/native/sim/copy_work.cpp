// What copies and fills do, whoever asked for them: a call, a captured node, a built one.
#include "regions.h"
#include "work.h"

#include <cstring>

namespace sim {
namespace {

// One end of a copy, as bytes with a row and a slice pitch.
struct End {
    std::uint64_t start = 0, pitch = 0, slice = 0;
    CUmemorytype type = CU_MEMORYTYPE_HOST;
};

End source_of(const CUDA_MEMCPY3D &copy) {
    End end;
    end.type = copy.srcMemoryType;
    end.start = end.type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(copy.srcHost) : copy.srcDevice;
    end.pitch = copy.srcPitch ? copy.srcPitch : copy.srcXInBytes + copy.WidthInBytes;
    end.slice = end.pitch * (copy.srcHeight ? copy.srcHeight : copy.srcY + copy.Height);
    end.start += copy.srcXInBytes + copy.srcY * end.pitch + copy.srcZ * end.slice;
    return end;
}

End destination_of(const CUDA_MEMCPY3D &copy) {
    End end;
    end.type = copy.dstMemoryType;
    end.start = end.type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(copy.dstHost) : copy.dstDevice;
    end.pitch = copy.dstPitch ? copy.dstPitch : copy.dstXInBytes + copy.WidthInBytes;
    end.slice = end.pitch * (copy.dstHeight ? copy.dstHeight : copy.dstY + copy.Height);
    end.start += copy.dstXInBytes + copy.dstY * end.pitch + copy.dstZ * end.slice;
    return end;
}

CUresult check_end(const End &end, const CUDA_MEMCPY3D &copy) {
    if (end.type == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
    if (end.type != CU_MEMORYTYPE_HOST && end.type != CU_MEMORYTYPE_DEVICE && end.type != CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
    if (!end.start || end.pitch < copy.WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
    // A unified address that the driver does not know is ordinary host memory.
    if (end.type != CU_MEMORYTYPE_DEVICE && !region_at(end.start)) return CUDA_SUCCESS;
    std::uint64_t reach = (copy.Depth - 1) * end.slice + (copy.Height - 1) * end.pitch + copy.WidthInBytes;
    return end.type == CU_MEMORYTYPE_HOST || device_accessible(end.start, reach) ? CUDA_SUCCESS
                                                                                 : CUDA_ERROR_INVALID_VALUE;
}

} // namespace

CUresult check_copy(const CUDA_MEMCPY3D &copy) {
    SIM_TRY(check_end(source_of(copy), copy));
    return check_end(destination_of(copy), copy);
}

void do_copy(const CUDA_MEMCPY3D &copy) {
    End source = source_of(copy), destination = destination_of(copy);
    for (std::size_t layer = 0; layer < copy.Depth; ++layer)
        for (std::size_t row = 0; row < copy.Height; ++row)
            if (copy.WidthInBytes)
                std::memmove(
                    reinterpret_cast<void *>(destination.start + layer * destination.slice + row * destination.pitch),
                    reinterpret_cast<const void *>(source.start + layer * source.slice + row * source.pitch),
                    copy.WidthInBytes);
}

CUresult check_fill(const CUDA_MEMSET_NODE_PARAMS &fill) {
    if (fill.elementSize != 1 && fill.elementSize != 2 && fill.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
    if (fill.dst % fill.elementSize != 0) return CUDA_ERROR_INVALID_VALUE;
    if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
    std::uint64_t row = fill.width * fill.elementSize;
    if (fill.height > 1 && fill.pitch < row) return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t reach = (fill.height - 1) * fill.pitch + row;
    return device_accessible(fill.dst, reach) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void do_fill(const CUDA_MEMSET_NODE_PARAMS &fill) {
    for (std::size_t row = 0; row < fill.height; ++row) {
        auto *start = reinterpret_cast<unsigned char *>(fill.dst + row * fill.pitch);
        if (fill.elementSize == 1) {
            std::memset(start, static_cast<int>(fill.value & 0xff), fill.width);
            continue;
        }
        for (std::size_t column = 0; column < fill.width; ++column)
            std::memcpy(start + column * fill.elementSize, &fill.value, fill.elementSize);
    }
}

} // namespace sim
