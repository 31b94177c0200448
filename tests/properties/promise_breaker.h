// A healthy target that breaks one of the promises of equal bits, by one bit of one output.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/target.h"

namespace kvcheck::properties {

enum class Promise {
  split,
  chunk,
  window,
  capacity,
  threads,
  isa,
  schedule,
  company,
  rollback,
  repeat,
  combined,
  order,
  packed,
  rank,
  separate,
  intermediate,
  scaling,
  padding
};

/// cpu-naive with every promise of equal bits claimed but `unclaimed`, and `broken` not kept;
/// empty = all are.
/// The last bit of the first element of an output is flipped when
///   split     the step brings more than one token
///   chunk     the step brings more than one token behind others (split_bits)
///   window    the cache evicts
///   capacity  the capacity is odd
///   threads   more than one thread is asked for
///   schedule  another order than lockstep is asked for
///   isa       "avx2" is asked for, of "avx512" and "avx2"
///   company   the batch has more than one entry
///   rollback  something was rolled back
///   repeat    the session is every second one
///   combined  threads and an instruction set are asked for at once
///   order     in any case, so that another entry or head moves in there (order_bits)
///   packed, rank, separate, intermediate
///             packed_qkv, inputs of rank 3, separate buffers, qk_output is asked for (format_bits)
///   scaling   the scale is less than half of 1/sqrt(head_size)
///   padding   the last lane of the last padding key is huge or NaN (f32, bf16)
std::unique_ptr<kernels::Target> make_promise_breaker(std::optional<Promise> broken,
                                                      const std::string& unclaimed = "");

}  // namespace kvcheck::properties
