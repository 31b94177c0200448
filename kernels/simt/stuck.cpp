// What is said when no thread of a block can go on: who waits for whom.
#include <bit>
#include <cstdio>

#include "kernels/simt/runner.h"

namespace kvcheck::kernels::simt {

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::none:
      return "nothing";
    case Operation::sync_warp:
      return "sync_warp";
    case Operation::shuffle:
      return "shuffle";
    case Operation::shuffle_xor:
      return "shuffle_xor";
    case Operation::shuffle_down:
      return "shuffle_down";
    case Operation::shuffle_up:
      return "shuffle_up";
    case Operation::ballot:
      return "ballot";
    case Operation::any_of:
      return "any_of";
    case Operation::all_of:
      return "all_of";
    case Operation::match_any:
      return "match_any";
    case Operation::load_matrix_x2:
      return "load_matrix_x2";
    case Operation::load_matrix_x4:
      return "load_matrix_x4";
    case Operation::load_matrix_x2_transposed:
      return "load_matrix_x2_transposed";
    case Operation::load_matrix_x4_transposed:
      return "load_matrix_x4_transposed";
    case Operation::multiply_add_f16:
      return "multiply_add<F16>";
    case Operation::multiply_add_bf16:
      return "multiply_add<BF16>";
  }
  return "unknown";
}

bool takes_whole_warp(Operation operation) { return operation >= Operation::load_matrix_x2; }

std::string mask_words(Operation operation, std::uint32_t mask) {
  char words[64];
  std::snprintf(words, sizeof words, "%s with mask 0x%08x", to_string(operation), mask);
  return words;
}

void Runner::report_stuck() {
  const Lane* waiting_lane = nullptr;
  const Lane* missing_lane = nullptr;
  bool mutual = false;
  for (std::uint32_t t = 0; t < shape_->threads && !mutual; ++t) {
    const Lane& lane = lanes_[t];
    if (lane.state != Lane::State::in_warp) continue;
    const std::uint32_t missing =
        lane.mask & alive_[static_cast<std::size_t>(lane.warp)] & ~(1U << lane.lane);
    for (std::uint32_t left = missing; left != 0 && !mutual; left &= left - 1) {
      const Lane& other = lanes_[static_cast<std::size_t>(lane.warp * 32 + std::countr_zero(left))];
      const bool in_warp = other.state == Lane::State::in_warp;
      if (in_warp && other.operation == lane.operation && other.mask == lane.mask) continue;
      mutual = in_warp && (other.mask >> lane.lane & 1) != 0;
      if (waiting_lane != nullptr && !mutual) continue;
      waiting_lane = &lane;
      missing_lane = &other;
    }
  }
  if (waiting_lane == nullptr) return;  // Only a lane of a warp can wait for what never comes.
  const Lane& lane = *waiting_lane;
  const Lane& other = *missing_lane;
  const bool matrix = takes_whole_warp(lane.operation);
  const DefectKind kind = matrix   ? DefectKind::matrix_operands
                          : mutual ? DefectKind::warp_mask
                                   : DefectKind::deadlock;
  const std::string elsewhere = other.state == Lane::State::at_block_barrier
                                    ? "at a barrier of the block"
                                    : "in " + mask_words(other.operation, other.mask);
  report_of(lane, kind, lane.site,
            "lane " + std::to_string(lane.lane) + " waits in " +
                mask_words(lane.operation, lane.mask) + " for lane " + std::to_string(other.lane) +
                ", which waits " + elsewhere,
            &other);
}

}  // namespace kvcheck::kernels::simt
