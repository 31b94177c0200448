// Prints what one scenario costs, part by part, in microseconds of processor time of this thread;
// no test, as times prove nothing on shared machines.
//
// scenario_cost [scenarios] [seed] [small]: `small` keeps drawing until a scenario has at most 2
// entries, 4 heads of 16 lanes, 6 steps and 40 tokens in all.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rapidcheck/Random.h>

#include "kernels/cpu/flash/cpu_flash.h"
#include "model/scenario_json.h"
#include "properties/case.h"
#include "properties/catalog.h"
#include "properties/convert.h"
#include "properties/generator.h"
#include "properties/requests.h"

namespace {

using namespace kvcheck;

double microseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

/// Sums per part, in the order in which the parts came first.
class Parts {
 public:
  template <class Do>
  void time(const std::string& part, Do&& work) {
    const double begin = microseconds();
    work();
    const double end = microseconds();
    for (auto& [name, sum, count] : parts_) {
      if (name == part) {
        sum += end - begin;
        ++count;
        return;
      }
    }
    parts_.push_back({part, end - begin, 1});
  }

  void print(std::int64_t scenarios) const {
    std::printf("%-32s %10s %10s\n", "part", "us/scenario", "times");
    for (const auto& [name, sum, count] : parts_) {
      std::printf("%-32s %10.1f %10lld\n", name.c_str(), sum / static_cast<double>(scenarios),
                  static_cast<long long>(count));
    }
  }

 private:
  struct Part {
    std::string name;
    double sum = 0;
    std::int64_t count = 0;
  };
  std::vector<Part> parts_;
};

bool is_small(const model::Scenario& s) {
  std::int64_t tokens = 0;
  for (const model::Step& step : s.steps) {
    if (const auto* append = std::get_if<model::Append>(&step)) {
      for (const auto n : append->tokens) tokens += n;
    } else if (const auto* past = std::get_if<model::Past>(&step)) {
      for (const auto n : past->tokens) tokens += n;
    }
  }
  return s.batch <= 2 && s.query_heads <= 4 && s.head_size <= 16 && s.value_head_size <= 16 &&
         s.steps.size() <= 6 && tokens <= 40;
}

void measure(kernels::Target& target, const model::Scenario& scenario, Parts& parts) {
  using namespace properties;
  std::string text;
  parts.time("content hash", [&] { text = model::content_hash(scenario); });
  std::optional<Case> made;
  parts.time("model: timeline, fill", [&] { made.emplace(target, scenario, Case::Mode::bundled); });
  Case& c = *made;
  parts.time("requests", [&] {
    session_config(scenario, c.timeline(), 0);
    for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
      if (!c.timeline().steps()[i].defined) break;
      if (std::holds_alternative<model::Append>(scenario.steps[i])) {
        step_request(scenario, c.timeline(), c.fill(), i);
      } else if (std::holds_alternative<model::Past>(scenario.steps[i])) {
        load_request(scenario, c.timeline(), c.fill(), i);
      }
    }
  });
  parts.time("requests and kernel", [&] { c.execution(); });
  parts.time("model: oracle", [&] {
    for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
      if (!c.timeline().steps()[i].defined) break;
      if (std::holds_alternative<model::Append>(scenario.steps[i])) c.oracle().expected(i);
    }
  });
  parts.time("runs in other ways", [&] { c.bundle(); });
  for (const Property& property : catalog()) {
    bool applies = false;
    parts.time("applicable?",
               [&] { applies = property.inapplicable(scenario, target.capabilities()).empty(); });
    if (applies) parts.time(property.id, [&] { judge(c, property); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t wanted = argc > 1 ? std::atoll(argv[1]) : 1000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const bool small = argc > 3 && std::string_view(argv[3]) == "small";
  const auto target = kernels::make_cpu_flash();
  const auto generator = properties::scenario_generator(target->capabilities());
  Parts parts;
  std::int64_t done = 0;
  const double begin = microseconds();
  double passed_over = 0;
  for (std::uint64_t index = 0; done < wanted; ++index) {
    const double before = microseconds();
    const auto scenario =
        generator(rc::Random(seed * 0x9e3779b97f4a7c15ULL + index), static_cast<int>(index % 101))
            .value();
    if (small && !is_small(scenario)) {
      passed_over += microseconds() - before;
      continue;
    }
    bool valid = false;
    parts.time("draw", [&] {
      generator(rc::Random(seed * 0x9e3779b97f4a7c15ULL + index), static_cast<int>(index % 101))
          .value();
    });
    parts.time("validate, claimed?", [&] {
      valid = model::validate(scenario).empty() &&
              properties::unsupported_reason(target->capabilities(), scenario).empty();
    });
    if (!valid) continue;
    measure(*target, scenario, parts);
    ++done;
  }
  parts.print(done);
  std::printf("%-32s %10.1f\n", "all",
              (microseconds() - begin - passed_over) / static_cast<double>(done));
}
