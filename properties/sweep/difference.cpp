// Tensor against tensor, element by element where the contract looks.
#include "properties/sweep/difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace kvcheck::properties {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool same_bits(const kernels::Tensor& a, const kernels::Tensor& b, std::int64_t at,
               std::int64_t count) {
  const std::size_t width = kernels::element_bytes(a.type);
  const std::size_t first = static_cast<std::size_t>(at) * width;
  return std::memcmp(a.bytes.data() + first, b.bytes.data() + first,
                     static_cast<std::size_t>(count) * width) == 0;
}

class Comparison {
 public:
  Comparison(Case& main, const Execution& other)
      : main_(main), mine_(main.execution()), other_(other) {}

  TargetDifference run() {
    if (mine_.open.status != other_.open.status) note_answers("the start", mine_.open, other_.open);
    for (std::size_t i = 0; i < mine_.steps.size(); ++i) {
      const StepAnswer &a = mine_.steps[i], &b = other_.steps[i];
      if (a.status != b.status) {
        note_answers(step_words(i), a, b);
        break;
      }
      if (a.status != StepAnswer::Status::ok || !main_.timeline().steps()[i].defined) break;
      if (present(i, "output", a.result.output, b.result.output)) compare_outputs(i);
      if (present(i, "qk_output", a.result.qk, b.result.qk)) compare_qk(i);
      if (a.result.rows && b.result.rows) compare_rows(i);
    }
    return std::move(found_);
  }

 private:
  std::string step_words(std::size_t step) const {
    return fmt::format("step {} ({})", step, model::describe(main_.scenario().steps[step]));
  }

  void note(std::string text, double ratio) {
    if (found_.text.empty()) found_.text = std::move(text);
    found_.ratio = std::max(found_.ratio, ratio);
  }

  void note_answers(const std::string& where, const StepAnswer& a, const StepAnswer& b) {
    const auto words = [](const StepAnswer& answer) {
      return answer.status == StepAnswer::Status::ok ? std::string("taken")
             : answer.reason.empty()                 ? std::string("not reached")
                                                     : answer.reason;
    };
    note(fmt::format("{}: {} against {}", where, words(a), words(b)), kInfinity);
  }

  /// Whether both are there and alike in shape and type; notes where they are not.
  bool present(std::size_t step, const char* what, const std::optional<kernels::Tensor>& a,
               const std::optional<kernels::Tensor>& b) {
    if (!a && !b) return false;
    if (a && b && a->shape == b->shape && a->type == b->type) return true;
    note(fmt::format("{}: {} differs in shape or type", step_words(step), what), kInfinity);
    return false;
  }

  void compare_outputs(std::size_t step) {
    const auto& s = main_.scenario();
    const kernels::Tensor &a = *mine_.steps[step].result.output,
                          &b = *other_.steps[step].result.output;
    const std::int64_t row = s.query_heads * s.value_head_size;
    for (std::int64_t e = 0; e < s.batch; ++e) {
      const auto& state = main_.timeline().steps()[step].entries[static_cast<std::size_t>(e)];
      for (std::int64_t q = 0; q < state.queries; ++q) {
        const std::int64_t first = (e * a.shape[1] + q) * row;
        if (same_bits(a, b, first, row)) continue;
        for (std::int64_t i = 0; i < row; ++i) {
          if (!same_bits(a, b, first + i, 1)) compare_output(step, e, q, i, first + i);
        }
      }
    }
  }

  void compare_output(std::size_t step, std::int64_t entry, std::int64_t query, std::int64_t in_row,
                      std::int64_t at) {
    const auto& s = main_.scenario();
    const std::int64_t head = in_row / s.value_head_size, lane = in_row % s.value_head_size;
    const double x = element(*mine_.steps[step].result.output, at);
    const double y = element(*other_.steps[step].result.output, at);
    const auto& expected = main_.oracle().expected(step);
    const double bound =
        expected.bound[model::element_index(s, expected, entry, query, head, lane)];
    const double distance = std::abs(x - y);
    const double ratio = !std::isfinite(distance) ? kInfinity
                         : distance == 0          ? 0
                                                  : distance / bound;
    note(fmt::format("{}: output of batch entry {}, query {}, head {}, lane {} is {:.9g} against "
                     "{:.9g}",
                     step_words(step), entry, query, head, lane, x, y),
         ratio);
  }

  void compare_qk(std::size_t step) {
    const auto& s = main_.scenario();
    const kernels::Tensor &a = *mine_.steps[step].result.qk, &b = *other_.steps[step].result.qk;
    const std::int64_t columns = a.shape[3];
    for (std::int64_t e = 0; e < s.batch; ++e) {
      const auto& state = main_.timeline().steps()[step].entries[static_cast<std::size_t>(e)];
      const std::int64_t keys = std::min(columns, state.length);
      for (std::int64_t h = 0; h < s.query_heads; ++h) {
        for (std::int64_t q = 0; q < state.queries; ++q) {
          const std::int64_t first = ((e * s.query_heads + h) * a.shape[2] + q) * columns;
          if (same_bits(a, b, first, keys)) continue;
          std::int64_t key = 0;
          while (same_bits(a, b, first + key, 1)) ++key;
          note(fmt::format("{}: qk_output of batch entry {}, head {}, query {}, key {} is {:.9g} "
                           "against {:.9g}",
                           step_words(step), e, h, q, key, element(a, first + key),
                           element(b, first + key)),
               found_.ratio);
        }
      }
    }
  }

  void compare_rows(std::size_t step) {
    const auto& a = *mine_.steps[step].result.rows;
    const auto& b = *other_.steps[step].result.rows;
    for (const auto& [what, x, y] :
         {std::tuple("key", &a.key, &b.key), std::tuple("value", &a.value, &b.value)}) {
      if (x->type != y->type || x->shape != y->shape) {
        note(fmt::format("{}: the rows of the {}s differ in shape or type", step_words(step), what),
             kInfinity);
        continue;
      }
      compare_side(step, what, *x, *y);
    }
  }

  void compare_side(std::size_t step, const char* what, const kernels::Tensor& x,
                    const kernels::Tensor& y) {
    const std::int64_t rows = x.shape[2], lanes = x.shape[3];
    for (std::int64_t e = 0; e < main_.scenario().batch; ++e) {
      const auto& state = main_.timeline().steps()[step].entries[static_cast<std::size_t>(e)];
      const std::int64_t live = std::min(rows, state.resident);
      for (std::int64_t h = 0; h < main_.scenario().kv_heads; ++h) {
        const std::int64_t first = (e * main_.scenario().kv_heads + h) * rows * lanes;
        if (same_bits(x, y, first, live * lanes)) continue;
        std::int64_t row = 0;
        while (same_bits(x, y, first + row * lanes, lanes)) ++row;
        note(fmt::format("{}: {} row {} of batch entry {}, KV head {} differs", step_words(step),
                         what, row, e, h),
             kInfinity);
      }
    }
  }

  Case& main_;
  const Execution &mine_, &other_;
  TargetDifference found_;
};

}  // namespace

TargetDifference compare_targets(Case& main, const Execution& other) {
  return Comparison(main, other).run();
}

}  // namespace kvcheck::properties
