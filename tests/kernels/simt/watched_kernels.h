// Small kernels, right and wrong ones, compiled with the instrumentation of kernels/cuda.
#pragma once

#include <span>
#include <string_view>

#include "kernels/simt/launch.h"

namespace kvcheck::kernels::simt {

/// Called before the statement whose line a test asks for.
void next_line_is(int which, int line = __builtin_LINE());
/// The line behind the last call with `which`; 0 before there was one.
int line_of(int which);

/// Memory that each of these kernels gets.
struct Buffers {
  float* input;       ///< Use::input, 256 numbers.
  float* output;      ///< Use::output, 256.
  float* scratch;     ///< Use::scratch, 256.
  float* cache;       ///< Use::read_write, 256.
  unsigned* counter;  ///< Use::read_write, 1 number, 0 at first.
};

struct WatchedKernel {
  std::string_view name;
  void (*run)(SimtQueue& queue, const Buffers& buffers);
};

/// Nothing is wrong with these.
std::span<const WatchedKernel> right_kernels();

/// Where the other access of a defect is.
enum class Other { none, same_line, line_1 };

/// A wrong one, and what is to be found: `kind` at line_of(0), with the other access where `other`
/// says; of a race the two may stand either way round, as the schedule has it.
struct WrongKernel : WatchedKernel {
  DefectKind kind;
  Other other = Other::none;
  std::string_view words = {};  ///< Part of the detail.
};
std::span<const WrongKernel> wrong_kernels();

}  // namespace kvcheck::kernels::simt
