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
  company,
  rollback,
  repeat,
  combined
};

/// cpu-naive with every promise of equal bits claimed but `unclaimed`, and `broken` not kept;
/// empty = all are.
/// The last bit of the first element of an output is flipped when
///   split     the step brings more than one token
///   chunk     the step brings more than one token behind others (split_bits)
///   window    the cache evicts
///   capacity  the capacity is odd
///   threads   more than one thread is asked for
///   isa       "avx2" is asked for, of "avx512" and "avx2"
///   company   the batch has more than one entry
///   rollback  something was rolled back
///   repeat    the session is every second one
///   combined  threads and an instruction set are asked for at once
std::unique_ptr<kernels::Target> make_promise_breaker(std::optional<Promise> broken,
                                                      const std::string& unclaimed = "");

}  // namespace kvcheck::properties
