// Tiled attention with online softmax over cached rows: what one step computes, on any threads.
//
// The unit of work is a block of queries of one entry with all query heads of one KV head, so that
// the whole group shares each load of keys and values. Keys are cut into tiles and chunks at
// absolute positions and merged in their order, so that bits depend on neither the buffer, the
// split of steps, the batch, the threads nor the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/flash/kernels.h"
#include "kernels/cpu/flash/workspace.h"
#include "kernels/cpu/key_range.h"
#include "kernels/cpu/row_store.h"

namespace kvcheck::kernels::flash {

/// What a mask tensor adds to logits.
class MaskSource {
 public:
  virtual ~MaskSource() = default;
  /// added[i] for position first + i of one query and head; -infinity hides the key.
  virtual void fill(std::int64_t entry, std::int64_t query, std::int64_t head, std::int64_t first,
                    std::int64_t count, float* added) const = 0;
};

struct FlashShape {
  std::int64_t batch = 1, query_heads = 1, kv_heads = 1, head_size = 8, value_head_size = 8;
  Storage storage = Storage::f32;
  std::int64_t group() const { return query_heads / kv_heads; }
};

/// One step. S = max_queries.
struct FlashStep {
  std::span<const EntryRows> entries;     ///< [B]
  std::span<const std::int64_t> queries;  ///< [B], each at most S.
  std::int64_t max_queries = 0;
  std::span<const KeyRange> ranges;   ///< [B][S] positions that a query sees, before the mask.
  RowSource query;                    ///< Rows of head_size elements, by entry, query and head.
  Storage query_type = Storage::f32;  ///< f32, f16 or bf16.
  const MaskSource* mask = nullptr;
  float scale = 1;
  float softcap = 0;                    ///< 0 = off.
  const float* sinks = nullptr;         ///< [Nq] one more logit for each head.
  const float* key_scales = nullptr;    ///< [Nk][H]
  const float* value_scales = nullptr;  ///< [Nk][Hv]
  std::byte* output = nullptr;  ///< [B,S,Nq,Hv]; rows past an entry's queries are not written.
  Storage output_type = Storage::f32;  ///< f32, f16 or bf16.
  float* maxima = nullptr;             ///< [B,S,Nq] largest logit of each row, or null.
  float* totals = nullptr;             ///< [B,S,Nq] sum of exp(logit - maximum); 0 = no key.
};

class FlashAttention {
 public:
  /// \param threads as SessionConfig::threads
  /// \param shares_groups false: query heads of one group are worked on one by one, as if each had
  /// keys of its own; with the same bits, to measure what sharing brings
  /// \param fault planted in the plan of units and chunks
  FlashAttention(const FlashShape& shape, const Kernels& kernels, int threads,
                 bool shares_groups = true, Fault fault = Fault::none);
  FlashAttention(FlashAttention&&) noexcept;
  ~FlashAttention();

  void run(const FlashStep& step);

  /// Logits before softcap and mask of every query row with the positions of step.ranges, bit for
  /// bit those of run(). \param to is called as to(entry, query, head, first, logits, visible) for
  /// every row and tile of 64 positions from `first` on; bit i of `visible` says that there is
  /// logits[i]
  using ProductSink = std::function<void(std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                         const float*, std::uint64_t)>;
  void products(const FlashStep& step, const ProductSink& to);

  /// Bytes of working memory, of all threads so far.
  std::int64_t scratch_bytes() const;

 private:
  struct Workspaces;
  /// Queries [first, first + count) of an entry, query heads from `head` on that share a KV head,
  /// and the chunks that they see.
  struct Unit {
    std::int64_t entry = 0, head = 0, first = 0, count = 0;
    std::int64_t chunk_begin = 0, chunk_end = 0;
  };

  std::int64_t rows_of(const Unit& unit) const { return unit.count * heads_per_unit_; }
  std::int64_t kv_head(const Unit& unit) const {
    const std::int64_t right = unit.head / shape_.group();
    return fault_ == Fault::head_modulo ? unit.head % shape_.kv_heads : right;
  }
  void plan(const FlashStep& step);
  UnitShape reserve(const FlashStep& step);
  void run_chunk(const FlashStep& step, const Unit& unit, std::int64_t chunk, Workspace& work,
                 const Partial& to, TileSink* sink = nullptr) const;
  void load_unit(const FlashStep& step, const Unit& unit, Workspace& work) const;
  void run_unit(const FlashStep& step, const Unit& unit, Workspace& work) const;
  void run_split(const FlashStep& step, const UnitShape& shape);
  void finish(const FlashStep& step, const Unit& unit, const Partial& merged) const;

  FlashShape shape_;
  const Kernels* kernels_;
  int threads_;
  int awake_ = 1;  ///< Of them, those that the step at hand is worth.
  Fault fault_;
  std::int64_t heads_per_unit_;
  std::int64_t queries_per_unit_;
  std::vector<Unit> units_;
  std::int64_t products_ = 0;                // Query rows times visible positions of the step.
  std::vector<std::int64_t> first_partial_;  // [units + 1], of run_split.
  Arena partials_;
  std::unique_ptr<Workspaces> workspaces_;
};

}  // namespace kvcheck::kernels::flash
