// Memory that a piece of work takes for a while, as the system sees it.
#pragma once

#include <cstdint>
#include <functional>

namespace kvcheck::kernels::bench {

/// Growth of this process's resident memory to its peak while `work` runs, in bytes, to whole
/// pages; 0 where the system does not tell. Memory that the allocator holds free is given back
/// first, so that its reuse counts too. Other threads must not allocate meanwhile.
std::int64_t peak_growth(const std::function<void()>& work);

}  // namespace kvcheck::kernels::bench
