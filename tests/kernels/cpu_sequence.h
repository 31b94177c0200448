// A sequence of steps on cpu-naive, on its quantised siblings where the cache is, or on another
// target, with keys and values that tell their position.
//
// The key and the value of a token are the same number in every lane: position + 100 * KV head +
// 1000 * entry + 0.5 * generation, where the generation counts the rollbacks before. Queries are
// 0 unless a test sets them, so that an output is the mean of the visible values.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/cpu/naive/cpu_naive.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

using Counts = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor tensor_of(ElementType type, std::vector<std::int64_t> shape, const Numbers& numbers);
Numbers numbers_of(const Tensor& tensor);

/// One head of one lane: gqa with a full cache of 16 rows.
SessionConfig full_cache(std::int64_t window = -1);
/// The same with block eviction.
SessionConfig block_cache(std::int64_t capacity, std::int64_t window);
/// attention of opset 23 with a past.
SessionConfig attention(bool causal = true);
/// attention of opset 24 with nonpad_kv_seqlen and a buffer of `capacity` rows.
SessionConfig nonpad(std::int64_t capacity, bool causal = true);

class Sequence {
 public:
  /// \param target cpu-naive or the sibling that the cache wants, where it is empty. \pre it takes
  /// `config`
  explicit Sequence(const SessionConfig& config, std::string_view fault = {},
                    std::string_view target = {});

  /// A step at the current lengths: coded rows, queries 0, no mask.
  StepRequest request(const Counts& tokens, const Counts& queries) const;
  /// A mask of the session's kind; \param shape of rank 2 to 4.
  Tensor mask(std::vector<std::int64_t> shape, const Numbers& numbers) const;

  /// Runs a step that the target must take. The numbers are the outputs of the real queries, in
  /// the order entry, query, head, lane.
  Numbers run(const StepRequest& request);
  Numbers append(const Counts& tokens) { return run(request(tokens, tokens)); }
  Numbers append(const Counts& tokens, const Counts& queries) {
    return run(request(tokens, queries));
  }
  /// The intermediate of the last run, [B,Nq,S,T]; empty without.
  const Numbers& qk() const { return qk_; }
  /// Drops this session and opens another one on the same target.
  void reopen();

  /// One entry, one token after the other; the outputs in a row.
  Numbers append_one_by_one(std::int64_t tokens);

  /// False when refused.
  bool rollback(const Counts& tokens);
  /// A past of these lengths whose row r holds first_positions[b] + r (0 + r where left out);
  /// rows without a position hold -7.
  void load(const Counts& lengths, const Counts& first_positions = {});

  /// First lane of rows [0, count).
  Numbers keys(std::int64_t count, std::int64_t entry = 0, std::int64_t head = 0) const;
  Numbers values(std::int64_t count, std::int64_t entry = 0, std::int64_t head = 0) const;

  Session& session() { return *session_; }
  const Counts& lengths() const { return lengths_; }

  double code(std::int64_t entry, std::int64_t head, std::int64_t position) const;

 private:
  Numbers lane(const Tensor& rows, std::int64_t count, std::int64_t entry, std::int64_t head) const;

  SessionConfig config_;
  std::unique_ptr<Target> target_;
  std::unique_ptr<Session> session_;
  Counts lengths_;
  std::int64_t generation_ = 0;
  Numbers qk_;
};

}  // namespace kvcheck::kernels
