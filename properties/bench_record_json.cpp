// The JSON form of a bench record. One list of fields per struct serves writing and reading.
#include <cmath>
#include <concepts>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "model/scenario_json.h"
#include "properties/bench_record.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;

template <class R, class T>
concept Of = std::same_as<std::remove_const_t<R>, T>;

void fields(auto& f, Of<BenchRow> auto& r) {
  f("id", r.id), f("what", r.what), f("shape", r.shape), f("element_type", r.element_type);
  f("T", r.T), f("ours_ms", r.ours_ms), f("peer", r.peer), f("peer_ms", r.peer_ms);
  f("ratio", r.ratio), f("quartiles", r.quartiles), f("noisy", r.noisy);
  f("window", r.window), f("capacity", r.capacity), f("pairs", r.pairs);
  f("ours_p10_ms", r.ours_p10_ms), f("peer_p10_ms", r.peer_p10_ms), f("ratio_p10", r.ratio_p10);
  f("at_least", r.at_least), f("aim", r.aim), f("status", r.status), f("why", r.why);
  f("flops", r.flops), f("bytes", r.bytes), f("fma_gflops", r.fma_gflops);
  f("read_gb_per_s", r.read_gb_per_s), f("roof", r.roof), f("roof_at_least", r.roof_at_least);
  f("roof_aim", r.roof_aim), f("roof_status", r.roof_status), f("bound_ratio", r.bound_ratio);
  f("peer_difference", r.peer_difference), f("cache_bytes", r.cache_bytes);
  f("scratch_bytes", r.scratch_bytes), f("peer_scratch_bytes", r.peer_scratch_bytes);
}

void fields(auto& f, Of<BenchGrowth> auto& r) {
  f("id", r.id), f("what", r.what), f("slope", r.slope), f("expected", r.expected);
  f("tolerance", r.tolerance), f("T", r.T), f("status", r.status);
}

void fields(auto& f, Of<BenchRecord> auto& r) {
  f("schema", r.schema), f("tool", r.tool), f("started", r.started), f("machine", r.machine);
  f("compiler", r.compiler), f("flags", r.flags), f("arguments", r.arguments);
  f("target", r.target), f("seconds", r.seconds), f("load", r.load), f("rows", r.rows);
  f("growth", r.growth), f("notes", r.notes);
}

class Writer {
 public:
  template <class T>
  static Json value_of(const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      return std::isfinite(value) ? Json(value) : Json();
    } else if constexpr (std::is_same_v<T, GoalStatus>) {
      return std::string(to_string(value));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else {
      Json json = Json::object();
      Writer writer(json);
      fields(writer, value);
      return json;
    }
  }
  template <class T>
  static Json value_of(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(value_of(value));
    return list;
  }

  explicit Writer(Json& out) : out_(out) {}
  void operator()(const char* name, const auto& value) { out_[name] = value_of(value); }

 private:
  Json& out_;
};

[[noreturn]] void fail(const std::string& path, const Json& found, std::string_view remedy) {
  constexpr std::size_t kShown = 60;
  std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  throw model::ScenarioError(path + " = " + text + ": must be " + std::string(remedy));
}

/// Fields that are missing keep their default, so that older records stay readable.
class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json_.is_object()) fail(path_.empty() ? "bench record" : path_, json_, "an object");
  }

  void operator()(const char* name, auto& value) const {
    const auto found = json_.find(name);
    if (found != json_.end()) read(*found, path_.empty() ? name : path_ + "." + name, value);
  }

 private:
  template <class T>
  static void read(const Json& json, const std::string& path, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) fail(path, json, "true or false");
      value = json.get<bool>();
    } else if constexpr (std::is_same_v<T, double>) {
      if (!json.is_number() && !json.is_null()) fail(path, json, "a number or null");
      value = json.is_null() ? kNotMeasured : json.get<double>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) fail(path, json, "a string");
      value = json.get<std::string>();
    } else if constexpr (std::is_same_v<T, GoalStatus>) {
      read_status(json, path, value);
    } else if constexpr (std::is_integral_v<T>) {
      if (!json.is_number_integer()) fail(path, json, "a whole number");
      const auto number = json.get<std::int64_t>();
      value = static_cast<T>(number);
      if (value != number) fail(path, json, "a smaller number");
    } else {
      const Reader inner(json, path);
      fields(inner, value);
    }
  }

  template <class T>
  static void read(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!json.is_array()) fail(path, json, "a list");
    values.clear();
    for (std::size_t i = 0; i < json.size(); ++i) {
      read(json[i], path + "[" + std::to_string(i) + "]", values.emplace_back());
    }
  }

  static void read_status(const Json& json, const std::string& path, GoalStatus& value) {
    for (const GoalStatus status : {GoalStatus::none, GoalStatus::not_measured, GoalStatus::missed,
                                    GoalStatus::reached, GoalStatus::aim}) {
      if (json == std::string(to_string(status))) {
        value = status;
        return;
      }
    }
    fail(path, json, "no goal, not measured, missed, reached or aim reached");
  }

  const Json& json_;
  std::string path_;
};

}  // namespace

std::string to_json(const BenchRecord& record) {
  return Writer::value_of(record).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

BenchRecord bench_record_from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw model::ScenarioError("bench record: is not JSON");
  const Reader reader(json, "");
  BenchRecord record;
  fields(reader, record);
  if (record.schema != 1) fail("schema", json["schema"], "1; this tool reads no other");
  if (!json.contains("rows")) throw model::ScenarioError("bench record: has no rows");
  return record;
}

}  // namespace kvcheck::properties
