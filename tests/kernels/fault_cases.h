// Cases of the planted faults: a short sequence, the right answer and the fault's answer by hand.
#pragma once

#include <functional>
#include <vector>

#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {

/// Holds in every target of the session's kind of cache that has the fault, or in `target` alone.
struct FaultCase {
  const char* fault;
  SessionConfig config;
  std::function<Numbers(Sequence&)> run;
  Numbers right;
  Numbers wrong;  ///< Empty: not the bits of the right kernel.
  const char* target = nullptr;
};

/// Mask origin, window edge, empty rows, unused rows, heads, precision.
std::vector<FaultCase> attention_fault_cases();
/// Lengths, layout, staging, rollback, batch, step split.
std::vector<FaultCase> cache_fault_cases();
/// Masks, softcap, sinks, packed inputs, intermediates.
std::vector<FaultCase> input_fault_cases();
/// Rotary embedding, norms and codes.
std::vector<FaultCase> row_fault_cases();
/// What is taken and declined.
std::vector<FaultCase> refusal_fault_cases();
/// Tiles, vectors, chunks and threads of cpu-flash.
std::vector<FaultCase> flash_fault_cases();

template <class Change>
SessionConfig with(SessionConfig config, const Change& change) {
  change(config);
  return config;
}

/// A step of `tokens` with given queries, keys and values, entry 0 first.
Numbers attend(Sequence& sequence, const Counts& tokens, const Counts& queries,
               const Numbers& query, const Numbers& key, const Numbers& value);

/// The output of a query of 1 behind keys and values of one lane, the last of which are its own.
double softmax_mean(const Numbers& keys, const Numbers& values);

}  // namespace kvcheck::kernels
