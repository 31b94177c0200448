// The scenario once more, with stores recorded.
#include "properties/last_store.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "properties/row_content.h"

namespace kvcheck::properties {
namespace {

using kernels::ElementPlace;

/// Whether a number is what is wrong. What executes the kernel names the place of a defect itself.
bool of_numbers(Kind kind) {
  switch (kind) {
    case Kind::crash:
    case Kind::hang:
    case Kind::nonsense:
    case Kind::defect:
    case Kind::wrongly_accepted:
    case Kind::wrongly_refused:
      return false;
    default:
      return true;
  }
}

std::string words(std::size_t step, const ElementPlace& place, const std::string& store) {
  if (place.of == ElementPlace::Of::output) {
    return fmt::format(
        "; after step {} lane {} of the output (batch entry {}, query {}, head {}) was {}", step,
        place.lane, place.entry, place.row, place.head, store);
  }
  return fmt::format(
      "; after step {} lane {} of the {} in row {} (batch entry {}, KV head {}) was {}", step,
      place.lane, place.of == ElementPlace::Of::key ? "key" : "value", place.row, place.entry,
      place.head, store);
}

/// Follows one run, and asks of the first number of a place that is wrong.
class Question {
 public:
  Question(Case& c, const Judgement& judgement)
      : c_(c),
        hint_(judgement.hint),
        element_(judgement.element),
        content_(c.scenario(), c.timeline(), c.fill(), c.roundoff(),
                 c.oracle().operands(c.roundoff())) {}

  void after(std::size_t step, kernels::Session& session, const kernels::StepResult& result) {
    if (!words_.empty() || !c_.timeline().steps()[step].defined) return;
    const bool last = step == static_cast<std::size_t>(hint_.step);
    std::optional<ElementPlace> place = element_ ? std::nullopt : wrong_row(step, result);
    if (!place && last) place = element_ ? element_ : worst_output(step, result);
    if (!place) return;
    const std::string store = session.last_store(*place);
    if (!store.empty()) words_ = words(step, *place, store);
  }

  const std::string& words_found() const { return words_; }

 private:
  bool asks_entry(std::int64_t entry) const { return hint_.entry < 0 || hint_.entry == entry; }
  bool asks_head(std::int64_t head) const {
    return hint_.query_head < 0 || hint_.query_head == head;
  }
  bool asks_kv_head(std::int64_t head) const {
    const std::int64_t group = c_.scenario().query_heads / c_.scenario().kv_heads;
    return hint_.query_head < 0 || hint_.query_head / group == head;
  }

  std::optional<ElementPlace> wrong_row(std::size_t step, const kernels::StepResult& result) {
    if (!result.rows || !content_.shape_problem(*result.rows).empty()) return std::nullopt;
    for (std::int64_t b = 0; b < c_.scenario().batch; ++b) {
      if (!asks_entry(b)) continue;
      const auto& state = c_.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
      const std::int64_t rows = std::min(state.resident, result.rows->key.shape[2]);
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto token = content_.held(step, b, {state.first_position.value + r});
        for (std::int64_t h = 0; h < c_.scenario().kv_heads; ++h) {
          if (!asks_kv_head(h)) continue;
          const auto match = content_.match(*result.rows, h, r, token);
          if (match.both()) continue;
          return ElementPlace{match.key ? ElementPlace::Of::value : ElementPlace::Of::key, b, h, r,
                              content_.first_other_lane(*result.rows, h, r, token)};
        }
      }
    }
    return std::nullopt;
  }

  /// Where none is wrong, the first one: the failure was seen in a run of another kind.
  std::optional<ElementPlace> worst_output(std::size_t step, const kernels::StepResult& result) {
    if (!result.output) return std::nullopt;
    const auto& s = c_.scenario();
    std::optional<ElementPlace> worst;
    double worst_ratio = -1;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto& state = c_.timeline().steps()[step].entries[static_cast<std::size_t>(b)];
      for (std::int64_t q = 0; asks_entry(b) && q < state.queries; ++q) {
        for (std::int64_t h = 0; h < s.query_heads; ++h) {
          for (std::int64_t l = 0; asks_head(h) && l < s.value_head_size; ++l) {
            const double ratio =
                c_.oracle().bound_ratio(step, b, q, h, l, output_at(*result.output, b, q, h, l));
            if (worst && ratio <= std::max(worst_ratio, 1.0)) continue;
            worst = ElementPlace{ElementPlace::Of::output, b, h, q, l};
            worst_ratio = ratio;
          }
        }
      }
    }
    return worst;
  }

  Case& c_;
  const shrinkers::Hint hint_;
  const std::optional<ElementPlace> element_;
  RowContent content_;
  std::string words_;
};

}  // namespace

std::string with_last_store(kernels::Target& target, const model::Scenario& scenario,
                            const Judgement& judgement) {
  if (!target.capabilities().has("last_store") || judgement.verdict != Verdict::failed ||
      judgement.hint.step < 0 || !of_numbers(judgement.kind)) {
    return judgement.text;
  }
  Case c(target, scenario);
  Question question(c, judgement);
  Interposer recording;
  recording.config = [](kernels::SessionConfig& config) { config.record_stores = true; };
  recording.after = [&](std::size_t step, kernels::Session& session,
                        const kernels::StepResult& result) {
    question.after(step, session, result);
  };
  ExecuteOptions options;
  options.step_count = static_cast<std::size_t>(judgement.hint.step) + 1;
  options.interposer = &recording;
  execute(target, c.scenario(), c.timeline(), c.fill(), options);
  return judgement.text + question.words_found();
}

}  // namespace kvcheck::properties
