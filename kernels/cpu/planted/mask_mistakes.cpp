// Faults in the mask tensor: which cell a query, a head and a key take, and what they read in it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/element.h"
#include "kernels/cpu/eviction.h"
#include "kernels/cpu/mask_rows.h"
#include "kernels/cpu/planted/input_mistakes.h"

namespace kvcheck::kernels {
namespace {

/// A cell of the whole mask [B,Nq,Sq,T].
struct Cell {
  std::int64_t entry = 0, head = 0, query = 0, column = 0;
};

class MistakenMask {
 public:
  MistakenMask(Fault fault, const SessionConfig& config, std::span<const std::int64_t> lengths,
               const StepRequest& request)
      : fault_(fault),
        config_(config),
        lengths_(lengths),
        request_(request),
        given_(*request.mask),
        queries_(*std::max_element(request.queries.begin(), request.queries.end())) {}

  Tensor read() const {
    const std::int64_t given = given_.shape.back();
    std::int64_t longest = config_.nonpad_kv_seqlen ? config_.capacity : 0;
    for (std::size_t b = 0; b < lengths_.size() && !config_.nonpad_kv_seqlen; ++b) {
      longest = std::max(longest, lengths_[b] + request_.tokens[b]);
    }
    const bool fills = fault_ == Fault::missing_columns_visible;
    const std::int64_t columns = fills ? std::max(given, longest) : given;
    Tensor taken =
        Tensor::zeros(given_.type, {config_.batch, config_.query_heads, queries_, columns});
    std::byte* to = taken.bytes.data();
    Cell at;
    for (at.entry = 0; at.entry < config_.batch; ++at.entry) {
      for (at.head = 0; at.head < config_.query_heads; ++at.head) {
        for (at.query = 0; at.query < queries_; ++at.query) {
          for (at.column = 0; at.column < columns; ++at.column) {
            encode_element(given_.type, value(at, given), to);
            to += element_bytes(given_.type);
          }
        }
      }
    }
    return taken;
  }

 private:
  double value(const Cell& right, std::int64_t columns) const {
    const bool boolean = given_.type == ElementType::boolean;
    if (right.column >= columns) return boolean ? 1 : 0;
    const Cell at = cell_for(right, columns);
    const MaskRow row = MaskRows(given_).row(at.entry, at.head, at.query);
    const auto bytes = static_cast<std::size_t>(at.column) * element_bytes(row.type);
    const double cell = decode_element(row.type, row.cells + bytes);
    if (boolean) return cell;
    if (fault_ == Fault::bias_hides_only) return std::isinf(cell) ? cell : 0;
    return fault_ == Fault::bias_before_scale ? cell * scale() : cell;
  }

  Cell cell_for(Cell at, std::int64_t columns) const {
    const std::int64_t group = config_.query_heads / config_.kv_heads;
    switch (fault_) {
      case Fault::mask_rank_three_by_batch:
        if (given_.shape.size() == 3) at.head = at.entry % given_.shape[0];
        break;
      case Fault::mask_first_row_for_all:
        at.query = 0;
        break;
      case Fault::mask_of_entry_zero:
        at.entry = 0;
        break;
      case Fault::mask_by_kv_head:
        at.head /= group;
        break;
      case Fault::mask_head_by_head: {
        // Rows of a group lie query by query, and are looked up head by head.
        const std::int64_t row = at.query * group + at.head % group;
        at = {at.entry, at.head / group * group + row / queries_, row % queries_, at.column};
        break;
      }
      case Fault::bias_one_column_late:
        at.column = std::max<std::int64_t>(0, at.column - 1);
        break;
      case Fault::bias_column_by_row:
        at.column = std::clamp<std::int64_t>(at.column - first_position(at.entry), 0, columns - 1);
        break;
      default:
        break;
    }
    return at;
  }

  std::int64_t first_position(std::int64_t entry) const {
    if (config_.layout == "full") return 0;
    const auto b = static_cast<std::size_t>(entry);
    const std::int64_t length = lengths_[b] + request_.tokens[b];
    const Eviction eviction = config_.layout == "block"
                                  ? Eviction::blocks(config_.capacity, config_.window_size)
                                  : Eviction::min_overflow(config_.capacity, config_.window_size);
    return length - eviction.resident(length);
  }

  double scale() const {
    return config_.scale != 0 ? config_.scale
                              : 1 / std::sqrt(static_cast<double>(config_.head_size));
  }

  Fault fault_;
  const SessionConfig& config_;
  std::span<const std::int64_t> lengths_;
  const StepRequest& request_;
  const Tensor& given_;
  std::int64_t queries_;
};

bool reads_masks(Fault fault) {
  constexpr Fault kOfMasks[] = {Fault::mask_rank_three_by_batch, Fault::mask_first_row_for_all,
                                Fault::mask_of_entry_zero,       Fault::mask_by_kv_head,
                                Fault::mask_head_by_head,        Fault::bias_one_column_late,
                                Fault::bias_column_by_row,       Fault::bias_hides_only,
                                Fault::bias_before_scale,        Fault::missing_columns_visible};
  return std::find(std::begin(kOfMasks), std::end(kOfMasks), fault) != std::end(kOfMasks);
}

}  // namespace

std::optional<Tensor> distort_mask(Fault fault, const SessionConfig& config,
                                   std::span<const std::int64_t> lengths,
                                   const StepRequest& request) {
  if (!reads_masks(fault)) return std::nullopt;
  return MistakenMask(fault, config, lengths, request).read();
}

}  // namespace kvcheck::kernels
