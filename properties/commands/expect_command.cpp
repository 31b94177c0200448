// Reading of scenarios, and the answer as text.
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

#include "model/blindness.h"
#include "model/rotary.h"
#include "model/scenario_json.h"
#include "model/tensor_json.h"
#include "model/timeline.h"
#include "properties/commands/expect_answer.h"

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
    if (s.qk_output != model::QkOutput::none)
      count += 2 * queries * heads * static_cast<double>(timeline.buffer_rows());
    using enum model::LayoutKind;
    const auto layout = s.cache.layout;
    if (layout == ring || layout == sinks || layout == paged)
      count += static_cast<double>(timeline.buffer_rows());
    if (!inputs) continue;
    const bool past = std::holds_alternative<model::Past>(s.steps[step]);
    const auto tokens = static_cast<double>(
        past ? entry.resident : std::max<std::int64_t>(0, entry.length - entry.past));
    count += queries * heads * static_cast<double>(s.head_size);
    count += tokens * static_cast<double>(s.kv_heads * (s.head_size + s.value_head_size));
    if (masked) count += queries * heads * static_cast<double>(timeline.buffer_rows());
  }
  if (inputs && s.rotary) {
    count +=
        static_cast<double>(model::rotary_rows(s, timeline)) * static_cast<double>(s.head_size);
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

/// "4 5 . 3": what each row holds, a dot for nothing.
std::string rows_text(const Json& positions) {
  std::string text;
  for (const Json& position : positions) {
    text += (text.empty() ? "" : " ") + (position.is_null() ? "." : position.dump());
  }
  return text;
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
  for (const char* name : {"seqlens_k", "total_sequence_length", "nonpad_kv_seqlen", "q", "k", "v",
                           "mask", "head_sink", "q_norm_weight", "k_norm_weight", "k_scale",
                           "v_scale", "position_ids", "cos_cache", "sin_cache"}) {
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
    if (one.contains("positions")) {
      out << fmt::format("  entry {}: rows hold positions {}\n", one["batch"].get<std::int64_t>(),
                         rows_text(one["positions"]));
      continue;
    }
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
  if (step.contains("qk_output")) {
    out << "  qk_output [entry][head][query][key] = " << step["qk_output"].dump() << '\n';
  }
}

/// What the scenario can tell apart, the least visible first.
Json readings(const Scenario& scenario) {
  auto found = model::separations(scenario, plain_arithmetic(scenario.element_type));
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  Json list = Json::array();
  for (const model::Separation& one : found) {
    Json entry{{"name", one.model->name},
               {"statement", one.model->statement},
               {"separation", model::number_json(one.ratio)}};
    if (one.ratio > 0) {
      entry["at"] = {{"step", one.where.step},
                     {"batch", one.where.entry},
                     {"query", one.where.query},
                     {"head", one.where.head},
                     {"lane", one.where.lane}};
    }
    list.push_back(std::move(entry));
  }
  return list;
}

void print_readings(const Json& readings, std::ostream& out) {
  out << "\nwrong readings, and how far their outputs are from the right ones, in bounds\n";
  for (const Json& one : readings) {
    const Json& separation = one["separation"];
    const double ratio = separation.is_number() ? separation.get<double>() : HUGE_VAL;
    out << fmt::format("  {:<10} {:<28} {}\n", ratio <= 1 ? "blind" : fmt::format("{:.3g}", ratio),
                       one["name"].get_ref<const std::string&>(),
                       one["statement"].get_ref<const std::string&>());
  }
}

/// The answer to one scenario.
Json answer(const ExpectOptions& options, const std::string& text) {
  const Scenario scenario = model::parse_scenario(text);
  const auto steps = chosen_steps(options, scenario);
  ExpectAnswer expected(scenario);
  Json json;
  json["scenario"] = model::to_json(scenario);
  json["hash"] = model::content_hash(scenario);
  json["steps"] = Json::array();
  for (const std::size_t step : steps) json["steps"].push_back(expected.step(step, options.inputs));
  if (options.readings) json["readings"] = readings(scenario);
  return json;
}

/// One answer for each line; a line that cannot be answered says why, and the others go on.
int answer_lines(const ExpectOptions& options, std::ostream& out) {
  std::ifstream file(options.file);
  if (!file) throw BadInput(fmt::format("expect: {}: cannot be opened", options.file.string()));
  int status = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      out << answer(options, line).dump() << '\n';
    } catch (const std::runtime_error& error) {
      out << Json{{"error", error.what()}}.dump(-1, ' ', false, Json::error_handler_t::replace)
          << '\n';
      status = kBadUsage;
    }
  }
  return status;
}

}  // namespace

int expect_command(const ExpectOptions& options, std::ostream& out, std::ostream& err) {
  try {
    if (options.file.extension() == ".jsonl") {
      if (options.json) return answer_lines(options, out);
      throw BadInput(
          fmt::format("expect: {}: scenarios by the line are answered as JSON; add --json",
                      options.file.string()));
    }
    const Json json = answer(options, read_file(options.file));
    if (options.json) {
      out << json.dump() << '\n';
    } else {
      out << json["scenario"].dump() << '\n';
      for (const Json& step : json["steps"]) print_step(step, out);
      if (options.readings) print_readings(json["readings"], out);
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
