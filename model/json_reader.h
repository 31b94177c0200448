// Reading JSON objects field by field, with errors that name the field, the value and the remedy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/scenario_json.h"

namespace kvcheck::model {

using Json = nlohmann::ordered_json;

/// Levels that a scenario may nest.
inline constexpr int kMaxDepth = 32;

/// `text` cut to what a message can carry, at the border of a UTF-8 character.
inline std::string shortened(std::string text, std::size_t most = 60) {
  if (text.size() <= most) return text;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

/// \throws ScenarioError
[[noreturn]] inline void fail(const std::string& field, const std::string& value,
                              const std::string& remedy) {
  throw ScenarioError(
      fmt::format("scenario: {} = {}: {}", shortened(field, 120), shortened(value), remedy));
}

/// Whether `value` nests at most `depth` levels; looks no deeper than that.
inline bool is_shallow(const Json& value, int depth) {
  if (!value.is_structured()) return true;
  if (depth == 0) return false;
  return std::all_of(value.begin(), value.end(),
                     [&](const Json& item) { return is_shallow(item, depth - 1); });
}

/// Value as text, short enough for a message.
inline std::string shown(const Json& value) {
  // Writing recurses, so a value that nests without end must not be written.
  if (!is_shallow(value, kMaxDepth)) return value.is_array() ? "[...]" : "{...}";
  return shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// One JSON object being read: every field is asked for by name, and what is left is unknown.
class Reader {
 public:
  Reader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object())
      fail(path_.empty() ? "text" : path_, shown(object), "must be an object");
  }

  const Json* find(const std::string& name) {
    known_.push_back(name);
    const auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }

  void read(const std::string& name, std::int64_t& out) {
    if (const Json* value = find(name)) out = integer(*value, field(name));
  }
  void read(const std::string& name, int& out) {
    std::int64_t wide = out;
    read(name, wide);
    if (wide < -1000000 || wide > 1000000)
      fail(field(name), fmt::format("{}", wide), "must be between -1000000 and 1000000");
    out = static_cast<int>(wide);
  }
  void read(const std::string& name, std::uint64_t& out) {
    const Json* value = find(name);
    if (!value) return;
    // A value built in memory may be signed; one that was parsed is unsigned where it can be.
    if (!value->is_number_unsigned() &&
        !(value->is_number_integer() && value->get<std::int64_t>() >= 0)) {
      fail(field(name), shown(*value), fmt::format("must be an integer from 0 to {}", UINT64_MAX));
    }
    out = value->get<std::uint64_t>();
  }
  void read(const std::string& name, bool& out) {
    const Json* value = find(name);
    if (!value) return;
    if (!value->is_boolean()) fail(field(name), shown(*value), "must be true or false");
    out = value->get<bool>();
  }
  void read(const std::string& name, std::string& out) {
    const Json* value = find(name);
    if (!value) return;
    if (!value->is_string()) fail(field(name), shown(*value), "must be a text");
    out = value->get<std::string>();
  }
  void read(const std::string& name, std::optional<std::int64_t>& out) {
    const Json* value = find(name);
    if (value && !value->is_null()) out = integer(*value, field(name));
  }
  void read(const std::string& name, std::optional<double>& out) {
    const Json* value = find(name);
    if (!value || value->is_null()) return;
    if (!value->is_number()) fail(field(name), shown(*value), "must be a number");
    out = value->get<double>();
  }
  void read(const std::string& name, double& out) {
    std::optional<double> value;
    read(name, value);
    if (value) out = *value;
  }
  template <class Enum>
  void read(const std::string& name, Enum& out, std::initializer_list<Enum> choices) {
    const Json* value = find(name);
    if (!value) return;
    std::string names;
    for (const Enum choice : choices) {
      if (value->is_string() && value->get_ref<const std::string&>() == to_string(choice)) {
        out = choice;
        return;
      }
      names += (names.empty() ? "" : ", ") + std::string(to_string(choice));
    }
    fail(field(name), shown(*value), "must be one of " + names);
  }
  void read(const std::string& name, std::vector<std::int64_t>& out) {
    if (const Json* value = find(name)) out = counts(*value, field(name));
  }

  /// \throws ScenarioError when a field was not asked for
  void finish() const {
    for (const auto& item : object_.items()) {
      if (std::find(known_.begin(), known_.end(), item.key()) == known_.end()) {
        fail(field(item.key()), shown(item.value()),
             fmt::format("unknown field; known here: {}", fmt::join(known_, ", ")));
      }
    }
  }

  std::string field(const std::string& name) const {
    return path_.empty() ? name : path_ + "." + name;
  }

 private:
  static std::int64_t integer(const Json& value, const std::string& field) {
    if (!value.is_number_integer()) fail(field, shown(value), "must be an integer");
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
      fail(field, shown(value), fmt::format("must be at most {}", INT64_MAX));
    }
    return value.get<std::int64_t>();
  }

  static std::vector<std::int64_t> counts(const Json& value, const std::string& field) {
    std::vector<std::int64_t> out;
    if (value.is_array()) {
      for (const Json& item : value) out.push_back(integer(item, field));
      if (out.empty()) fail(field, "[]", "must hold a number for each batch entry");
    } else {
      out.push_back(integer(value, field));
    }
    return out;
  }

  const Json& object_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace kvcheck::model
