// Which store left each byte of global memory as it is: where to begin with a wrong number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/element.h"
#include "kernels/simt/defect.h"
#include "kernels/simt/site.h"

namespace kvcheck::kernels::simt {

/// The store of a kernel that came last to a byte.
struct LastStore {
  SourcePlace place;
  SourcePlace caller;       ///< In the function that `place` is inlined into; may be the same.
  std::string kernel;       ///< "decode_kernel"; empty where the program carries no names.
  std::int64_t launch = 0;  ///< Of those since the log began, from 1 on.
  device::Index3 block;
  int thread = 0;
  /// "stored at kernels/cuda/row_tile.cuh:112, called at kernels/cuda/decode.cuh:214, by thread 3
  /// of block (0,1,0) of decode_kernel, launch 2".
  std::string sentence() const;
};

/// Stores of all launches, by number. Allocations keep one number for each of their bytes.
class StoreLog {
 public:
  struct Record {
    std::uintptr_t code = 0;
    Site site;  ///< Empty where the line is looked up by `code`.
    std::int64_t block = 0;
    std::uint32_t launch = 0;  ///< Set by number().
    int thread = 0;
  };

  /// \param kernel the address of its code
  void begin_launch(const void* kernel, device::Index3 grid);
  /// The number of a store of this launch, from 1 on. A thread that goes on storing at one place
  /// has one number. \pre 0 <= record.thread < 1024
  std::uint32_t number(Record record);
  /// \pre number() gave it
  LastStore at(std::uint32_t number) const;

 private:
  struct Launch {
    const void* kernel = nullptr;
    device::Index3 grid;
  };
  std::vector<Launch> launches_;
  std::vector<Record> records_;
  std::vector<std::uint32_t> latest_ = std::vector<std::uint32_t>(1024);  // By thread; 0 = none.
};

}  // namespace kvcheck::kernels::simt
