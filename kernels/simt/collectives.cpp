// Warp collectives.
#include "kernels/simt/collectives.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/simt/matrix.h"

namespace kvcheck::kernels::simt {
namespace {

constexpr std::uint32_t kUndefined = 0x7fa17fa1;  // Not a number in any format.

template <class Each>
void for_each_lane(Meeting& meeting, Each each) {
  for (std::uint32_t left = meeting.arrived; left != 0; left &= left - 1) {
    each(*meeting.lanes[static_cast<std::size_t>(std::countr_zero(left))]);
  }
}

int source_of(Operation operation, int lane, std::uint32_t argument) {
  const int by = static_cast<int>(argument % 32);
  switch (operation) {
    case Operation::shuffle:
      return by;
    case Operation::shuffle_xor:
      return lane ^ by;
    case Operation::shuffle_down:
      return lane + by < 32 ? lane + by : lane;
    default:
      return lane >= by ? lane - by : lane;
  }
}

void report_source(Runner& runner, const Meeting& meeting, const Lane& lane, int source) {
  const bool outside = (meeting.mask >> source & 1) == 0;
  runner.report_of(lane, DefectKind::warp_mask, lane.site,
                   mask_words(meeting.operation, meeting.mask) + " reads from lane " +
                       std::to_string(source) +
                       (outside ? ", which is outside the mask" : ", which has exited"),
                   nullptr);
}

/// The rows that the lanes name, checked. Rows of lanes behind the last matrix are ignored.
void read_rows(Runner& runner, Meeting& meeting, int rows, std::uint16_t (&out)[32][8]) {
  const std::span<std::byte> shared = runner.shared();
  for (int i = 0; i < rows; ++i) {
    const Lane& lane = *meeting.lanes[static_cast<std::size_t>(i)];
    const auto address = reinterpret_cast<std::uintptr_t>(lane.exchanged.address);
    const auto begin = reinterpret_cast<std::uintptr_t>(shared.data());
    const bool inside = address >= begin && address - begin < shared.size();
    if (!inside || address % 16 != 0) {
      runner.report_of(lane, DefectKind::matrix_operands, lane.site,
                       std::string(to_string(meeting.operation)) + ": the row of lane " +
                           std::to_string(i) +
                           (inside ? " is not aligned to 16 bytes" : " is not in shared memory"),
                       nullptr);
      runner.give_up();
    }
    const Access access{.address = lane.exchanged.address,
                        .bytes = 16,
                        .code = lane.exchanged.code,
                        .site = lane.site};
    if (!runner.monitor().access(lane.index, access)) runner.give_up();
    std::memcpy(out[i], lane.exchanged.address, 16);
  }
}

}  // namespace

void complete_sync(Runner& runner, Meeting& meeting) {
  runner.monitor().warp_barrier(meeting.warp, meeting.arrived);
}

void complete_exchange(Runner& runner, Meeting& meeting) {
  for_each_lane(meeting, [&](Lane& lane) {
    const int source = source_of(meeting.operation, lane.lane, lane.exchanged.in[1]);
    if ((meeting.arrived >> source & 1) == 0) {
      report_source(runner, meeting, lane, source);
      lane.exchanged.out[0] = kUndefined;
      return;
    }
    lane.exchanged.out[0] = meeting.lanes[static_cast<std::size_t>(source)]->exchanged.in[0];
  });
}

void complete_vote(Runner&, Meeting& meeting) {
  std::uint32_t yes = 0;
  for_each_lane(meeting, [&](const Lane& lane) {
    if (lane.exchanged.in[0] != 0) yes |= 1U << lane.lane;
  });
  std::uint32_t result = yes;
  if (meeting.operation == Operation::any_of) result = yes != 0;
  if (meeting.operation == Operation::all_of) result = yes == meeting.arrived;
  for_each_lane(meeting, [&](Lane& lane) { lane.exchanged.out[0] = result; });
}

void complete_match(Runner&, Meeting& meeting) {
  for_each_lane(meeting, [&](Lane& lane) {
    std::uint32_t same = 0;
    for_each_lane(meeting, [&](const Lane& other) {
      if (other.exchanged.in[0] == lane.exchanged.in[0]) same |= 1U << other.lane;
    });
    lane.exchanged.out[0] = same;
  });
}

void complete_load_matrix(Runner& runner, Meeting& meeting) {
  const Operation operation = meeting.operation;
  const bool four =
      operation == Operation::load_matrix_x4 || operation == Operation::load_matrix_x4_transposed;
  const bool transposed = operation == Operation::load_matrix_x2_transposed ||
                          operation == Operation::load_matrix_x4_transposed;
  const std::size_t matrices = four ? 4 : 2;
  std::uint16_t rows[32][8];
  read_rows(runner, meeting, static_cast<int>(8 * matrices), rows);
  for_each_lane(meeting, [&](Lane& lane) {
    const auto group = static_cast<std::size_t>(lane.lane / 4);
    const auto pair = static_cast<std::size_t>(2 * (lane.lane % 4));
    for (std::size_t i = 0; i < matrices; ++i) {
      const std::uint32_t low = transposed ? rows[8 * i + pair][group] : rows[8 * i + group][pair];
      const std::uint32_t high =
          transposed ? rows[8 * i + pair + 1][group] : rows[8 * i + group][pair + 1];
      lane.exchanged.out[i] = low | high << 16;
    }
  });
}

void complete_multiply_add(Runner& runner, Meeting& meeting) {
  MatrixProduct product;
  for_each_lane(meeting, [&](const Lane& lane) {
    const auto& in = lane.exchanged.in;
    Fragments fragments;
    std::copy_n(in.begin(), 4, fragments.a.begin());
    std::copy_n(in.begin() + 4, 2, fragments.b.begin());
    for (std::size_t i = 0; i < 4; ++i) fragments.d[i] = std::bit_cast<float>(in[6 + i]);
    place(lane.lane, fragments, product);
  });
  multiply_add(meeting.operation == Operation::multiply_add_f16 ? Half::f16 : Half::bf16, product);
  for_each_lane(meeting, [&](Lane& lane) {
    const std::array<float, 4> sums = sums_of(lane.lane, product);
    for (std::size_t i = 0; i < 4; ++i) {
      lane.exchanged.out[i] = std::bit_cast<std::uint32_t>(sums[i]);
    }
  });
  runner.monitor().count_matrix_product();
}

}  // namespace kvcheck::kernels::simt
