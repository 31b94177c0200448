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

/// "decode_kernel (kernels/cuda/decode.cuh:178)": a kernel and the line where it begins. Empty
/// where the program carries no names. \param kernel the address of its code
std::string kernel_words(const void* kernel);

/// The store of a kernel that came last to a byte.
struct LastStore {
  SourcePlace place;
  std::string kernel;       ///< kernel_words()
  std::int64_t launch = 0;  ///< Of those since the log began, from 1 on.
  device::Index3 block;
  int thread = 0;
  /// "kernels/cuda/merge.cuh:80 by thread 3 of block (0,1,0) of merge_kernel
  /// (kernels/cuda/merge.cuh:56), launch 3".
  std::string words() const;
};

/// Stores of all launches, by number. Allocations keep one number for each of their bytes.
class StoreLog {
 public:
  struct Record {
    std::uintptr_t code = 0;
    Site site;  ///< Empty where the line is looked up by `code`.
    std::int64_t block = 0;
    int thread = 0;
  };

  /// \param kernel the address of its code
  void begin_launch(const void* kernel, device::Index3 grid);
  /// A thread reads a byte of scratch that store `number` left; 0 = none did.
  /// \pre 0 <= thread < 1024
  void note_read(std::int64_t block, int thread, std::uint32_t number);
  /// The number of a store of this launch, from 1 on. A thread that goes on storing at one place
  /// has one number. \pre 0 <= record.thread < 1024
  std::uint32_t number(const Record& record);

  /// \pre number() gave it
  LastStore at(std::uint32_t number) const;
  /// The store that left what its thread had read of scratch last before it, which is where what it
  /// stored comes from; 0 = it had read none. \pre number() gave it
  std::uint32_t source_of(std::uint32_t number) const { return entries_[number - 1].source; }

 private:
  struct Launch {
    const void* kernel = nullptr;
    device::Index3 grid;
  };
  struct Entry {
    Record record;
    std::uint32_t launch = 0, source = 0;
  };
  /// What a thread did last in its block.
  struct Thread {
    std::uint32_t launch = 0;
    std::int64_t block = 0;
    std::uint32_t read = 0;    ///< Number of the store that it read, 0 = none.
    std::uint32_t stored = 0;  ///< Number of its own store, 0 = none.
  };
  Thread& thread_of(std::int64_t block, int thread);

  std::vector<Launch> launches_;
  std::vector<Entry> entries_;
  std::vector<Thread> threads_ = std::vector<Thread>(1024);
};

}  // namespace kvcheck::kernels::simt
