// The answer as a document.
#include "properties/commands/expect_answer.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "model/mask.h"
#include "model/parameters.h"
#include "model/rotary.h"
#include "model/tensor_json.h"
#include "model/visibility.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;
using model::Append;
using model::number_json;

/// A list of `count` items made by `item(i)`.
template <class Item>
Json list(std::int64_t count, Item item) {
  Json out = Json::array();
  for (std::int64_t i = 0; i < count; ++i) out.push_back(item(i));
  return out;
}

/// Nested lists of shape `shape` from `at` on, with `element(coordinates)` innermost.
template <class Element>
Json nested(const std::vector<std::int64_t>& shape, std::vector<std::int64_t>& at,
            Element element) {
  if (at.size() == shape.size()) return element(at);
  Json out = Json::array();
  for (std::int64_t i = 0; i < shape[at.size()]; ++i) {
    const std::size_t depth = at.size();
    at.push_back(i);
    out.push_back(nested(shape, at, element));
    at.resize(depth);
  }
  return out;
}

}  // namespace

model::ArithmeticProfile plain_arithmetic(model::ElementType type) {
  if (type == model::ElementType::f64) return model::double_profile();
  model::ArithmeticProfile profile;
  profile.output_type = type;
  return profile;
}

ExpectAnswer::ExpectAnswer(const model::Scenario& scenario)
    : oracle_(scenario, plain_arithmetic(scenario.element_type)),
      s_(oracle_.scenario()),
      operands_(s_, oracle_.timeline(), oracle_.fill(),
                plain_arithmetic(s_.element_type).accumulator_roundoff, right_) {}

const model::EntryStep& ExpectAnswer::entry(std::int64_t b) const {
  return oracle_.timeline().steps()[step_].entries[static_cast<std::size_t>(b)];
}

Json ExpectAnswer::step(std::size_t step, bool inputs) {
  step_ = step;
  const model::TimelineStep& state = oracle_.timeline().steps()[step];
  Json json;
  json["step"] = step;
  json["does"] = model::describe(s_.steps[step]);
  json["defined"] = state.defined;
  if (!state.defined) json["why"] = state.undefined_reason;
  json["T"] = list(s_.batch, [&](std::int64_t b) { return entry(b).length; });
  for (const char* name : {"resident", "visible", "outputs", "bound"}) json[name] = Json::array();
  if (!state.defined) return json;
  json["resident"] = list(s_.batch, [&](std::int64_t b) { return resident(b); });
  const auto* append = std::get_if<Append>(&s_.steps[step]);
  if (append && *std::max_element(append->queries.begin(), append->queries.end()) > 0) {
    add_visible(json["visible"]);
    add_outputs(json);
    if (s_.qk_output != model::QkOutput::none) add_qk(json);
  }
  if (inputs) add_inputs(json);
  return json;
}

Json ExpectAnswer::resident(std::int64_t b) const {
  Json json{
      {"batch", b}, {"first_position", entry(b).first_position.value}, {"rows", entry(b).resident}};
  using enum model::LayoutKind;
  const auto layout = s_.cache.layout;
  if (layout != ring && layout != sinks && layout != paged) return json;
  json["positions"] = list(oracle_.timeline().buffer_rows(), [&](std::int64_t row) {
    const auto position = oracle_.timeline().position_in_row(step_, b, {row});
    return position ? Json(position->value) : Json();
  });
  return json;
}

void ExpectAnswer::add_visible(Json& visible) const {
  const bool per_head =
      s_.mask.kind != model::MaskKind::none && s_.mask.rank >= 3 && !s_.mask.one_head;
  for (std::int64_t b = 0; b < s_.batch; ++b) {
    for (std::int64_t h = 0; h < (per_head ? s_.query_heads : 1); ++h) {
      for (std::int64_t i = 0; i < entry(b).queries; ++i) {
        Json one{{"batch", b}};
        if (per_head) one["head"] = h;
        one["query_position"] = entry(b).origin.value + i;
        one["keys"] = Json::array();
        for (const auto key : model::visible_positions(s_, oracle_.timeline(), step_, b, h, i)) {
          one["keys"].push_back(key.value);
        }
        visible.push_back(std::move(one));
      }
    }
  }
}

void ExpectAnswer::add_outputs(Json& json) {
  const model::Expected& expected = oracle_.expected(step_);
  const auto per_query = [&](auto element) {
    return list(s_.batch, [&](std::int64_t b) {
      return list(entry(b).queries, [&](std::int64_t i) {
        return list(s_.query_heads, [&](std::int64_t h) {
          return list(s_.value_head_size, [&](std::int64_t c) { return element(b, i, h, c); });
        });
      });
    });
  };
  json["outputs"] = per_query([&](auto... at) { return oracle_.exact_output(step_, at...); });
  json["bound"] = per_query([&](std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t c) {
    return number_json(expected.bound[model::element_index(s_, expected, b, i, h, c)]);
  });
}

void ExpectAnswer::add_qk(Json& json) {
  const model::QkExpected& qk = oracle_.expected_qk(step_);
  const auto tensor = [&](const std::vector<double>& values) {
    return list(s_.batch, [&](std::int64_t b) {
      return list(s_.query_heads, [&](std::int64_t h) {
        return list(entry(b).queries, [&](std::int64_t i) {
          const std::int64_t row = (b * s_.query_heads + h) * qk.queries + i;
          return list(qk.columns, [&](std::int64_t j) {
            return number_json(values[static_cast<std::size_t>(row * qk.columns + j)]);
          });
        });
      });
    });
  };
  json["qk_output"] = tensor(qk.values);
  json["qk_bound"] = tensor(qk.bound);
}

Json ExpectAnswer::tokens(bool keys) {
  const auto* append = std::get_if<Append>(&s_.steps[step_]);
  const bool past = std::holds_alternative<model::Past>(s_.steps[step_]);
  const std::int64_t lanes = keys ? s_.head_size : s_.value_head_size;
  std::vector<double> row(static_cast<std::size_t>(lanes));
  const auto given = [&](std::int64_t b, std::int64_t h, model::Token token) {
    if (past) {
      const model::TokenRows& held = operands_.stored({b, token, step_});
      const auto& all = keys ? held.keys : held.values;
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(h * lanes);
      row.assign(first, first + static_cast<std::ptrdiff_t>(lanes));
    } else if (keys) {
      oracle_.fill().key_row(b, h, token, row);
    } else {
      oracle_.fill().value_row(b, h, token, row);
    }
    return list(lanes,
                [&](std::int64_t c) { return number_json(row[static_cast<std::size_t>(c)]); });
  };
  return list(s_.batch, [&](std::int64_t b) {
    const std::int64_t begin = past ? entry(b).first_position.value : entry(b).past;
    const std::int64_t count = append || past ? entry(b).length - begin : 0;
    return list(count, [&](std::int64_t i) {
      const model::Token token{{begin + i}, append ? append->generation : 0};
      return list(s_.kv_heads, [&](std::int64_t h) { return given(b, h, token); });
    });
  });
}

void ExpectAnswer::add_inputs(Json& json) {
  std::vector<double> row(static_cast<std::size_t>(s_.head_size));
  json["q"] = list(s_.batch, [&](std::int64_t b) {
    return list(entry(b).queries, [&](std::int64_t i) {
      return list(s_.query_heads, [&](std::int64_t h) {
        oracle_.fill().query_row(step_, b, h, i, row);
        return list(s_.head_size,
                    [&](std::int64_t c) { return number_json(row[static_cast<std::size_t>(c)]); });
      });
    });
  });
  json["k"] = tokens(true);
  json["v"] = tokens(false);
  if (!std::holds_alternative<Append>(s_.steps[step_])) return;
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < s_.batch; ++b) longest = std::max(longest, entry(b).length);
  if (s_.op == model::Operator::gqa) {
    json["seqlens_k"] = list(s_.batch, [&](std::int64_t b) { return entry(b).length - 1; });
    json["total_sequence_length"] = longest;
  } else if (s_.nonpad_kv_seqlen) {
    json["nonpad_kv_seqlen"] = json["T"];
  }
  add_parameters(json);
  if (s_.mask.kind != model::MaskKind::none) json["mask"] = mask();
}

void ExpectAnswer::add_parameters(Json& json) const {
  if (s_.head_sink) {
    json["head_sink"] =
        list(s_.query_heads, [&](std::int64_t h) { return number_json(model::sink_logit(s_, h)); });
  }
  if (s_.qk_norm) {
    for (const auto& [name, side] : {std::pair{"q_norm_weight", model::NormSide::query},
                                     std::pair{"k_norm_weight", model::NormSide::key}}) {
      json[name] = list(s_.head_size, [&, side = side](std::int64_t c) {
        return number_json(model::norm_weight(s_, side, c));
      });
    }
  }
  const auto& quantisation = s_.cache.quantisation;
  if (quantisation.kind != model::QuantisationKind::none) {
    const std::int64_t scales = quantisation.per_channel ? s_.kv_heads * s_.head_size : 1;
    for (const auto& [name, side] : {std::pair{"k_scale", model::CacheSide::key},
                                     std::pair{"v_scale", model::CacheSide::value}}) {
      json[name] = list(scales, [&, side = side](std::int64_t i) {
        return number_json(model::cache_scale(s_, side, i / s_.head_size, i % s_.head_size));
      });
    }
  }
  if (s_.rotary) add_rotary(json);
}

void ExpectAnswer::add_rotary(Json& json) const {
  const model::Rotary rotary(s_);
  const std::int64_t rows = model::rotary_rows(s_, oracle_.timeline());
  const auto table = [&](bool cos) {
    return list(rows, [&](std::int64_t position) {
      return list(rotary.pairs(), [&](std::int64_t pair) {
        const model::Turn turn = rotary.turn(position, pair);
        return number_json(cos ? turn.cos : turn.sin);
      });
    });
  };
  json["cos_cache"] = table(true);
  json["sin_cache"] = table(false);
  if (s_.rotary->position_ids) {
    json["position_ids"] = model::position_ids(s_, oracle_.timeline(), step_);
  }
}

Json ExpectAnswer::mask() const {
  const auto element = [&](const std::vector<std::int64_t>& at) {
    // Dimensions are aligned on the right; what a low rank lacks is the same for all.
    const auto from_right = [&](std::size_t place) {
      return at.size() > place ? at[at.size() - 1 - place] : 0;
    };
    const model::MaskCell cell = model::mask_cell(s_, oracle_.timeline(), step_, from_right(3),
                                                  from_right(2), from_right(1), {from_right(0)});
    if (s_.mask.kind == model::MaskKind::boolean) return Json(!cell.hides);
    return cell.hides ? Json("-inf") : number_json(cell.bias);
  };
  std::vector<std::int64_t> at;
  return nested(model::mask_shape(s_, oracle_.timeline(), step_), at, element);
}

}  // namespace kvcheck::properties
