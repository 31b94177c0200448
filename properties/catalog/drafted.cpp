// Choosing drafts.
#include "properties/catalog/drafted.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "model/counter_hash.h"
#include "model/layout.h"

namespace kvcheck::properties {
namespace {

using model::Append;
using model::Rollback;
using model::Scenario;

constexpr std::int64_t kFirstGeneration = 1000;
constexpr std::int64_t kMostDrafts = 3;

/// A draft as a list of steps: n > 0 appends n tokens, n < 0 drops as many.
using Moves = std::vector<std::int64_t>;

Moves moves_of(std::uint64_t shape, std::int64_t tokens, bool chunks) {
  if (!chunks) tokens = 1;
  switch (shape % 4) {
    case 0:
      return {tokens, -tokens};
    case 1: {
      Moves moves{tokens};
      moves.insert(moves.end(), static_cast<std::size_t>(tokens), -1);
      return moves;
    }
    case 2:
      return {1, -1, tokens, -tokens};
    default:
      if (tokens == 1) return {1, -1, 1, -1};
      return {tokens, -1, 1 - tokens, 1, -1};
  }
}

/// Whether an entry of `length` tokens may take the moves, every rollback exact.
bool exact(const model::Layout& layout, std::int64_t length, std::int64_t rows,
           const Moves& moves) {
  for (const std::int64_t move : moves) {
    if (move < 0 && layout.max_exact_rollback(length) < -move) return false;
    length += move;
    if (length > rows) return false;
  }
  return true;
}

}  // namespace

std::string Drafted::in_words() const {
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    const auto* append = std::get_if<Append>(&scenario.steps[i]);
    if (!append || append->generation < kFirstGeneration) continue;
    const auto next = std::upper_bound(places.begin(), places.end(), i);
    std::string words;
    for (std::size_t j = i; next != places.end() && j < *next; ++j) {
      words += (words.empty() ? "" : ", ") + model::describe(scenario.steps[j]);
    }
    return fmt::format("before step {}: {}", next - places.begin(), words);
  }
  return "";
}

Drafted with_drafts(const Scenario& scenario, const model::Timeline& timeline, bool chunks) {
  Drafted drafted;
  drafted.scenario = scenario;
  Scenario& out = drafted.scenario;
  out.steps.clear();
  // A draft has five moves at most.
  out.steps.reserve(scenario.steps.size() + 5 * static_cast<std::size_t>(kMostDrafts));
  drafted.places.reserve(scenario.steps.size());
  const bool buffer = scenario.op == model::Operator::gqa || scenario.nonpad_kv_seqlen;
  const bool limited = buffer && scenario.cache.layout == model::LayoutKind::full;
  const std::int64_t rows =
      limited ? timeline.buffer_rows() : std::numeric_limits<std::int64_t>::max();
  if (limited) out.cache.capacity = rows;
  const auto counts = [&](std::int64_t n) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(scenario.batch), n);
  };
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    const std::uint64_t hash = model::counter_hash(scenario.fill.seed, i, scenario.steps.size());
    const bool before_append = std::holds_alternative<Append>(scenario.steps[i]);
    const bool defined = i == 0 || timeline.steps()[i - 1].defined;
    for (std::int64_t tokens = 3;
         before_append && defined && drafted.drafts < kMostDrafts && tokens > 0; --tokens) {
      const Moves moves = moves_of(hash, tokens, chunks);
      const bool all = std::ranges::all_of(timeline.steps()[i].entries, [&](const auto& entry) {
        return exact(timeline.layout(), entry.past, rows, moves);
      });
      if (!all) continue;
      const std::int64_t generation = kFirstGeneration + 10 * static_cast<std::int64_t>(i);
      std::int64_t turn = 0;
      for (const std::int64_t move : moves) {
        if (move > 0) {
          out.steps.emplace_back(Append{counts(move), counts(move), generation + turn++});
        } else {
          out.steps.emplace_back(Rollback{counts(-move)});
        }
      }
      ++drafted.drafts;
      break;
    }
    drafted.places.push_back(out.steps.size());
    out.steps.push_back(scenario.steps[i]);
  }
  return drafted;
}

}  // namespace kvcheck::properties
