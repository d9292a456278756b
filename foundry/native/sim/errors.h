#pragma once

#include "cuda_abi.h"

#include <string>

namespace sim {

// A CUresult by name or number; CUDA_ERROR_UNKNOWN for what is neither.
CUresult error_from_text(const std::string &text);

} // namespace sim
