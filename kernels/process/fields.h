// Typed fields of JSON objects, and lists of fields that are said once for both directions.
//
// What travels is described by functions each_field(value, visit) that name every field of a
// structure. FieldWriter makes an object of it, FieldReader reads it back, FieldNames lists it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/process/frame.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// What a person recognises of bytes that should have been something else.
std::string shown(std::string_view bytes, std::size_t most);

/// A number, or one of the words for those that JSON cannot write: "nan", "inf", "-inf".
nlohmann::json json_number(double value);
std::optional<double> number_from(const nlohmann::json& value);

/// The list that tells a reader how to split the body.
nlohmann::json json_descriptions(std::span<const NamedTensor> tensors);

/// \throws ProtocolError unless the head is a JSON object
nlohmann::json parse_head(std::string_view head, FrameKind kind);

/// Reads typed fields of a JSON object and names them when they are not there.
class Fields {
 public:
  /// `name` is what messages call the object. \throws ProtocolError unless it is one
  Fields(const nlohmann::json& object, std::string name);

  const std::string& name() const { return name_; }
  const nlohmann::json& object() const { return object_; }

  /// \throws ProtocolError where it is not there
  const nlohmann::json& at(const std::string& field) const;
  bool has(const std::string& field) const { return object_.contains(field); }

  /// \throws ProtocolError where it is not there, of another type, or out of the type's range
  template <class T>
  T get(const std::string& field) const {
    const nlohmann::json& value = at(field);
    if (auto read = as<T>(value)) return std::move(*read);
    throw ProtocolError(
        fmt::format("{}.{} = {}: has the wrong type", name_, field, shown(value.dump(), 60)));
  }

  /// The elements of an array; empty where it is not there.
  template <class T>
  std::vector<T> list(const std::string& field) const {
    std::vector<T> result;
    if (!has(field)) return result;
    for (const nlohmann::json& item : array(field)) {
      auto read = as<T>(item);
      if (!read) {
        throw ProtocolError(fmt::format("{}.{} holds {}: has the wrong type", name_, field,
                                        shown(item.dump(), 60)));
      }
      result.push_back(std::move(*read));
    }
    return result;
  }

  /// The object in a field.
  Fields part(const std::string& field) const {
    return {at(field), fmt::format("{}.{}", name_, field)};
  }

 private:
  const nlohmann::json& array(const std::string& field) const;

  template <class T>
  static std::optional<T> as(const nlohmann::json& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (value.is_boolean()) return value.get<bool>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (value.is_string()) return value.get<std::string>();
    } else if constexpr (std::is_same_v<T, ElementType>) {
      if (value.is_string()) return element_type_from(value.get<std::string>());
    } else if constexpr (std::is_floating_point_v<T>) {
      return number_from(value);
    } else if (value.is_number_unsigned()) {
      const auto whole = value.get<std::uint64_t>();
      if (std::in_range<T>(whole)) return static_cast<T>(whole);
    } else if (value.is_number_integer()) {
      const auto whole = value.get<std::int64_t>();
      if (std::in_range<T>(whole)) return static_cast<T>(whole);
    }
    return std::nullopt;
  }

  const nlohmann::json& object_;
  std::string name_;
};

/// The tensors that the head of a frame announces.
/// \throws ProtocolError where they cannot be, or do not take body_bytes
std::vector<TensorHead> decode_tensors(const Fields& head, std::uint64_t body_bytes);

/// The tensors of a request, by name, each to be taken once.
class RequestTensors {
 public:
  /// \throws ProtocolError where two have the same name
  void add(std::string name, Tensor tensor);
  bool has(std::string_view name) const;
  /// \throws ProtocolError where it is not there
  Tensor take(std::string_view name);
  /// All that are left, in the order in which they came.
  std::vector<OperatorCall::Input> take_all() { return std::exchange(tensors_, {}); }
  /// \throws ProtocolError where one is left
  void finish() const;

 private:
  std::vector<OperatorCall::Input> tensors_;
};

/// Makes an object of the fields that it visits, and lists the tensors. A field that is given a
/// default is left out where it has it.
class FieldWriter {
 public:
  FieldWriter(nlohmann::json& object, std::vector<NamedTensor>& tensors)
      : object_(object), tensors_(tensors) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = json_of(value);
  }
  template <class T>
  void operator()(const char* name, const T& value, const T& otherwise) {
    if (!(value == otherwise)) (*this)(name, value);
  }
  void tensor(std::string_view name, const Tensor& tensor) { tensors_.push_back({name, &tensor}); }
  void tensor(std::string_view name, const std::optional<Tensor>& optional) {
    if (optional) tensor(name, *optional);
  }
  /// A field that says that a tensor is there.
  void announced(const char* name, const std::optional<Tensor>& optional) {
    if (optional) object_[name] = true;
    tensor(name, optional);
  }
  template <class T, class Visit>
  void group(const char* name, const std::optional<T>& part, Visit&& visit) {
    if (part) group(name, *part, true, visit);
  }
  /// A part that is left out where it is not `there`.
  template <class T, class Visit>
  void group(const char* name, const T& part, bool there, Visit&& visit) {
    if (!there) return;
    FieldWriter inner(object_[name] = nlohmann::json::object(), tensors_);
    visit(part, inner);
  }
  template <class T, class Visit>
  void groups(const char* name, const std::map<std::string, T>& parts, Visit&& visit) {
    if (parts.empty()) return;
    FieldWriter inner(object_[name] = nlohmann::json::object(), tensors_);
    for (const auto& [key, part] : parts) inner.group(key.c_str(), part, true, visit);
  }

 private:
  template <class T>
  static nlohmann::json json_of(const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      return json_number(value);
    } else if constexpr (std::is_same_v<T, ElementType>) {
      return to_string(value);
    } else if constexpr (std::is_same_v<T, std::optional<ElementType>>) {
      return to_string(*value);
    } else {
      return value;
    }
  }

  nlohmann::json& object_;
  std::vector<NamedTensor>& tensors_;
};

/// Reads what a FieldWriter has made.
class FieldReader {
 public:
  /// `tensors` may be null where no field brings any.
  FieldReader(const Fields& fields, RequestTensors* tensors) : fields_(fields), tensors_(tensors) {}

  template <class T>
  void operator()(const char* name, T& value) {
    read(name, value);
  }
  template <class T>
  void operator()(const char* name, T& value, const T& otherwise) {
    if (fields_.has(name)) {
      read(name, value);
    } else {
      value = otherwise;
    }
  }
  void tensor(std::string_view name, Tensor& tensor) { tensor = tensors_->take(name); }
  void tensor(std::string_view name, std::optional<Tensor>& tensor) {
    if (tensors_->has(name)) tensor = tensors_->take(name);
  }
  void announced(const char* name, std::optional<Tensor>& tensor) {
    if (fields_.has(name) && fields_.get<bool>(name)) tensor = tensors_->take(name);
  }
  template <class T, class Visit>
  void group(const char* name, std::optional<T>& part, Visit&& visit) {
    if (fields_.has(name)) group(name, part.emplace(), true, visit);
  }
  template <class T, class Visit>
  void group(const char* name, T& part, bool, Visit&& visit) {
    if (!fields_.has(name)) return;
    const Fields inner = fields_.part(name);
    FieldReader reader(inner, tensors_);
    visit(part, reader);
  }
  template <class T, class Visit>
  void groups(const char* name, std::map<std::string, T>& parts, Visit&& visit) {
    if (!fields_.has(name)) return;
    const Fields inner = fields_.part(name);
    for (const auto& [key, object] : inner.object().items()) {
      const Fields fields(object, fmt::format("{}[\"{}\"]", inner.name(), key));
      FieldReader reader(fields, tensors_);
      visit(parts[key], reader);
    }
  }

 private:
  template <class T>
  void read(const std::string& name, T& value) {
    value = fields_.get<T>(name);
  }
  template <class T>
  void read(const std::string& name, std::optional<T>& value) {
    value = fields_.get<T>(name);
  }
  template <class T>
  void read(const std::string& name, std::vector<T>& values) {
    if (!fields_.has(name)) fields_.at(name);
    values = fields_.list<T>(name);
  }
  template <class T, class Less>
  void read(const std::string& name, std::set<T, Less>& values) {
    const auto items = fields_.list<T>(name);
    values = std::set<T, Less>(items.begin(), items.end());
  }
  template <class T>
  void read(const std::string& name, std::map<std::string, T>& values) {
    const Fields inner = fields_.part(name);
    FieldReader reader(inner, tensors_);
    for (const auto& [key, unused] : inner.object().items()) reader.read(key, values[key]);
  }

  const Fields& fields_;
  RequestTensors* tensors_;
};

/// The names of all fields that it visits; those of parts behind a dot: "rotary.interleaved".
class FieldNames {
 public:
  template <class T>
  void operator()(const char* name, const T&) {
    names_.insert(prefix_ + name);
  }
  template <class T>
  void operator()(const char* name, const T&, const T&) {
    names_.insert(prefix_ + name);
  }
  template <class T>
  void tensor(std::string_view, const T&) {}
  void announced(const char* name, const std::optional<Tensor>&) { names_.insert(prefix_ + name); }
  template <class T, class Visit>
  void group(const char* name, const std::optional<T>&, Visit&& visit) {
    group(name, T{}, true, visit);
  }
  template <class T, class Visit>
  void group(const char* name, const T& part, bool, Visit&& visit) {
    names_.insert(prefix_ + name);
    const std::string outer = std::exchange(prefix_, prefix_ + name + ".");
    visit(part, *this);
    prefix_ = outer;
  }

  /// A field of the object, or of an object in it, that was not visited: "rotary.base".
  std::optional<std::string> unknown_in(const nlohmann::json& object,
                                        const std::string& prefix = "") const;

 private:
  std::set<std::string> names_;
  std::string prefix_;
};

}  // namespace kvcheck::kernels
