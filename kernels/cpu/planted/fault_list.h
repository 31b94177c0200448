// What each planted fault is called, which targets have it and what it does.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/cpu/planted/faults.h"

namespace kvcheck::kernels {

/// Targets that a fault is planted in, as bits.
enum Kernel : unsigned {
  kNaive = 1,
  kNaiveQ8 = 2,
  kNaiveQ4 = 4,
  kFlash = 8,
  kFlashQ8 = 16,
  kFlashQ4 = 32,
};
inline constexpr unsigned kBoth = kNaive | kFlash;
inline constexpr unsigned kCodes = kNaiveQ8 | kNaiveQ4 | kFlashQ8 | kFlashQ4;

/// Whether the mistake can be made in single rows alone.
inline constexpr bool kRow = true, kWhole = false;

struct PlantedFault {
  Fault fault;
  const char* name;
  unsigned kernels;
  const char* kind;
  bool one_row;
  const char* reports;  ///< Ids with a space between them.
  const char* statement;
  std::int64_t from_length = 1;  ///< As FaultInfo::from_length.
};

/// What a query sees and how it sums.
std::span<const PlantedFault> attention_fault_list();
/// Where rows lie and how many there are.
std::span<const PlantedFault> cache_fault_list();
/// What sessions and steps bring, and what is taken and declined.
std::span<const PlantedFault> input_fault_list();
/// Tiles, vectors, chunks and threads of cpu-flash.
std::span<const PlantedFault> flash_fault_list();

}  // namespace kvcheck::kernels
