// The model's answer as a document, and that document as text.
#include "properties/commands/expect_command.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/mask.h"
#include "model/oracle.h"
#include "model/scenario_json.h"
#include "model/visibility.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;
using model::Append;
using model::Scenario;

constexpr int kBadUsage = 254;
/// Longest text that parse_scenario takes, and one byte more so that it can say so.
constexpr std::size_t kMostBytes = (4u << 20) + 1;
constexpr double kMostNumbers = 1 << 22;

/// Input that cannot be answered; what() says why and what to do.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string read_file(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& why) {
    return BadInput(fmt::format("expect: {}: {}", path.string(), why));
  };
  if (std::filesystem::is_directory(path)) throw fail("is a folder; name a scenario file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw fail("cannot be opened; check that the file exists and may be read");
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw fail("cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

model::ArithmeticProfile plain_arithmetic(model::ElementType type) {
  if (type == model::ElementType::f64) return model::double_profile();
  model::ArithmeticProfile profile;
  profile.output_type = type;
  return profile;
}

/// JSON has no infinities.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// A list of `count` items made by `item(i)`.
template <class Item>
Json list(std::int64_t count, Item item) {
  Json out = Json::array();
  for (std::int64_t i = 0; i < count; ++i) out.push_back(item(i));
  return out;
}

class Answer {
 public:
  explicit Answer(const Scenario& scenario)
      : oracle_(scenario, plain_arithmetic(scenario.element_type)), s_(oracle_.scenario()) {}

  Json step(std::size_t step, bool inputs) {
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
    json["resident"] = list(s_.batch, [&](std::int64_t b) {
      return Json{{"batch", b},
                  {"first_position", entry(b).first_position.value},
                  {"rows", entry(b).resident}};
    });
    const auto* append = std::get_if<Append>(&s_.steps[step]);
    if (append && *std::max_element(append->queries.begin(), append->queries.end()) > 0) {
      add_visible(json["visible"]);
      add_outputs(json);
    }
    if (inputs) add_inputs(json);
    return json;
  }

 private:
  const model::EntryStep& entry(std::int64_t b) const {
    return oracle_.timeline().steps()[step_].entries[static_cast<std::size_t>(b)];
  }

  void add_visible(Json& visible) const {
    const bool per_head = s_.mask.kind != model::MaskKind::none && s_.mask.rank >= 3;
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

  void add_outputs(Json& json) {
    const model::Expected& expected = oracle_.expected(step_);
    const auto bound = [&](std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t c) {
      const std::int64_t at =
          ((b * expected.queries + i) * s_.query_heads + h) * s_.value_head_size + c;
      return number(expected.bound[static_cast<std::size_t>(at)].total());
    };
    json["outputs"] =
        per_query([&](std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t c) {
          return oracle_.exact_output(step_, b, i, h, c);
        });
    json["bound"] = per_query(bound);
  }

  /// [batch][query][query head][lane of the value].
  template <class Element>
  Json per_query(Element element) const {
    return list(s_.batch, [&](std::int64_t b) {
      return list(entry(b).queries, [&](std::int64_t i) {
        return list(s_.query_heads, [&](std::int64_t h) {
          return list(s_.value_head_size, [&](std::int64_t c) { return element(b, i, h, c); });
        });
      });
    });
  }

  /// [batch][token][KV head][lane] of the tokens that the step brings.
  template <class Element>
  Json per_token(std::int64_t lanes, Element element) const {
    const auto* append = std::get_if<Append>(&s_.steps[step_]);
    const bool past = std::holds_alternative<model::Past>(s_.steps[step_]);
    return list(s_.batch, [&](std::int64_t b) {
      const std::int64_t begin = past ? entry(b).first_position.value : entry(b).past;
      const std::int64_t count = append || past ? entry(b).length - begin : 0;
      return list(count, [&](std::int64_t i) {
        const model::Token token{{begin + i}, append ? append->generation : 0};
        return list(s_.kv_heads, [&](std::int64_t h) {
          return list(lanes, [&](std::int64_t c) { return number(element(b, h, token, c)); });
        });
      });
    });
  }

  void add_inputs(Json& json) const {
    const model::Fill& fill = oracle_.fill();
    json["q"] = list(s_.batch, [&](std::int64_t b) {
      return list(entry(b).queries, [&](std::int64_t i) {
        return list(s_.query_heads, [&](std::int64_t h) {
          return list(s_.head_size,
                      [&](std::int64_t c) { return number(fill.query(step_, b, h, i, c)); });
        });
      });
    });
    json["k"] = per_token(s_.head_size, [&](auto... at) { return fill.key(at...); });
    json["v"] = per_token(s_.value_head_size, [&](auto... at) { return fill.value(at...); });
    if (!std::holds_alternative<Append>(s_.steps[step_])) return;
    std::int64_t longest = 0;
    for (std::int64_t b = 0; b < s_.batch; ++b) longest = std::max(longest, entry(b).length);
    if (s_.op == model::Operator::gqa) {
      json["seqlens_k"] = list(s_.batch, [&](std::int64_t b) { return entry(b).length - 1; });
      json["total_sequence_length"] = longest;
    } else if (s_.nonpad_kv_seqlen) {
      json["nonpad_kv_seqlen"] = json["T"];
      longest = oracle_.timeline().buffer_rows();
    }
    if (s_.mask.kind != model::MaskKind::none) json["mask"] = mask(longest);
  }

  Json mask(std::int64_t columns) const {
    const auto element = [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
      const model::Position query{entry(b).origin.value + i};
      const bool hides = model::mask_hides(s_, b, h, query, {j});
      if (s_.mask.kind == model::MaskKind::boolean) return Json(!hides);
      return hides ? Json("-inf") : number(model::mask_bias(s_, b, h, query, {j}));
    };
    Json planes = list(s_.mask.rank >= 4 ? s_.batch : 1, [&](std::int64_t b) {
      return list(s_.mask.rank >= 3 ? s_.query_heads : 1, [&](std::int64_t h) {
        return list(entry(b).queries, [&](std::int64_t i) {
          return list(columns, [&](std::int64_t j) { return element(b, h, i, j); });
        });
      });
    });
    if (s_.mask.rank >= 4) return planes;
    return s_.mask.rank == 3 ? planes[0] : planes[0][0];
  }

  model::Oracle oracle_;
  const Scenario& s_;
  std::size_t step_ = 0;
};

/// Numbers that the answer to step `step` holds, as a double so that no product overflows.
double numbers_of(const Scenario& s, const model::Timeline& timeline, std::size_t step,
                  bool inputs) {
  double count = 0;
  for (const model::EntryStep& entry : timeline.steps()[step].entries) {
    const auto queries = static_cast<double>(entry.queries);
    const auto heads = static_cast<double>(s.query_heads);
    const double seen = static_cast<double>(
        s.cache.window_size ? std::min(*s.cache.window_size, entry.length) : entry.length);
    const bool masked = s.mask.kind != model::MaskKind::none;
    count += queries * seen * (masked && s.mask.rank >= 3 ? heads : 1);
    count += 2 * queries * heads * static_cast<double>(s.value_head_size);
    if (!inputs) continue;
    const bool past = std::holds_alternative<model::Past>(s.steps[step]);
    const auto tokens = static_cast<double>(
        past ? entry.resident : std::max<std::int64_t>(0, entry.length - entry.past));
    count += queries * heads * static_cast<double>(s.head_size);
    count += tokens * static_cast<double>(s.kv_heads * (s.head_size + s.value_head_size));
    if (masked) count += queries * heads * static_cast<double>(timeline.buffer_rows());
  }
  return count;
}

std::vector<std::size_t> chosen_steps(const ExpectOptions& options, const Scenario& scenario) {
  const auto count = static_cast<std::int64_t>(scenario.steps.size());
  if (options.step < -1 || options.step >= count) {
    throw BadInput(fmt::format("expect: --step = {}: must be between 0 and {}, the last step of {}",
                               options.step, count - 1, options.file.string()));
  }
  const model::Timeline timeline(scenario);
  std::vector<std::size_t> steps;
  double numbers = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (options.step >= 0 && i != options.step) continue;
    steps.push_back(static_cast<std::size_t>(i));
    if (timeline.steps()[steps.back()].defined)
      numbers += numbers_of(scenario, timeline, steps.back(), options.inputs);
  }
  if (numbers > kMostNumbers) {
    throw BadInput(fmt::format(
        "expect: {}: the answer would hold {:.0f} numbers, at most {:.0f} are printed; choose one "
        "step with --step, or make the scenario smaller",
        options.file.string(), numbers, kMostNumbers));
  }
  return steps;
}

/// "0-3, 5".
std::string ranges(const Json& positions) {
  std::string text;
  for (std::size_t i = 0; i < positions.size();) {
    std::size_t end = i + 1;
    const auto first = positions[i].get<std::int64_t>();
    while (end < positions.size() &&
           positions[end].get<std::int64_t>() == first + static_cast<std::int64_t>(end - i)) {
      ++end;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ", ", first);
    if (end - i > 1) text += fmt::format("-{}", positions[end - 1].get<std::int64_t>());
    i = end;
  }
  return text.empty() ? "nothing" : text;
}

void print_outputs(const Json& step, std::ostream& out) {
  const Json& outputs = step["outputs"];
  for (std::size_t b = 0; b < outputs.size(); ++b) {
    for (std::size_t i = 0; i < outputs[b].size(); ++i) {
      for (std::size_t h = 0; h < outputs[b][i].size(); ++h) {
        out << fmt::format("  output of entry {}, query {}, head {}\n", b, i, h);
        for (std::size_t c = 0; c < outputs[b][i][h].size(); ++c) {
          const Json& bound = step["bound"][b][i][h][c];
          out << fmt::format("    lane {:<4} {:<36} +- {}\n", c,
                             outputs[b][i][h][c].get_ref<const std::string&>(),
                             bound.is_number() ? fmt::format("{:.3g}", bound.get<double>())
                                               : bound.get<std::string>());
        }
      }
    }
  }
}

void print_inputs(const Json& step, std::ostream& out) {
  for (const char* name :
       {"seqlens_k", "total_sequence_length", "nonpad_kv_seqlen", "q", "k", "v", "mask"}) {
    if (step.contains(name)) out << "  " << name << " = " << step[name].dump() << '\n';
  }
}

void print_step(const Json& step, std::ostream& out) {
  out << fmt::format("\nstep {}: {}\n", step["step"].get<std::size_t>(),
                     step["does"].get_ref<const std::string&>());
  out << "  T = " << step["T"].dump() << '\n';
  if (!step["defined"].get<bool>()) {
    out << "  not defined: " << step["why"].get_ref<const std::string&>() << '\n';
    return;
  }
  for (const Json& one : step["resident"]) {
    const auto first = one["first_position"].get<std::int64_t>();
    const auto rows = one["rows"].get<std::int64_t>();
    out << fmt::format("  entry {}: ", one["batch"].get<std::int64_t>())
        << (rows > 0
                ? fmt::format("rows 0-{} hold positions {}-{}\n", rows - 1, first, first + rows - 1)
                : "no row is live\n");
  }
  for (const Json& one : step["visible"]) {
    out << fmt::format("  entry {}, ", one["batch"].get<std::int64_t>());
    if (one.contains("head")) out << fmt::format("head {}, ", one["head"].get<std::int64_t>());
    out << fmt::format("query at position {} sees {}\n", one["query_position"].get<std::int64_t>(),
                       ranges(one["keys"]));
  }
  print_inputs(step, out);
  print_outputs(step, out);
}

}  // namespace

int expect_command(const ExpectOptions& options, std::ostream& out, std::ostream& err) {
  try {
    const Scenario scenario = model::parse_scenario(read_file(options.file));
    const auto steps = chosen_steps(options, scenario);
    Answer answer(scenario);
    Json json;
    json["scenario"] = model::to_json(scenario);
    json["hash"] = model::content_hash(scenario);
    json["steps"] = Json::array();
    for (const std::size_t step : steps) json["steps"].push_back(answer.step(step, options.inputs));
    if (options.json) {
      out << json.dump() << '\n';
    } else {
      out << json["scenario"].dump() << '\n';
      for (const Json& step : json["steps"]) print_step(step, out);
    }
    return 0;
  } catch (const BadInput& error) {
    err << error.what() << '\n';
  } catch (const model::ScenarioError& error) {
    err << fmt::format("expect: {}: {}\n", options.file.string(), error.what());
  }
  return kBadUsage;
}

}  // namespace kvcheck::properties
