// Lists as JSON, and the same as lines of text.
#include "properties/commands/list_command.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/registry.h"
#include "properties/catalog.h"
#include "properties/sweep/grid.h"

namespace kvcheck::properties {
namespace {

using Json = nlohmann::ordered_json;

Json targets_json() {
  auto list = Json::array();
  for (const auto& info : kernels::list_targets(kernels::RegistryOptions::from_environment())) {
    list.push_back({{"name", info.name},
                    {"version", info.version},
                    {"available", info.available},
                    {"reason", info.reason}});
  }
  return {{"targets", list}};
}

Json properties_json() {
  auto list = Json::array();
  for (const Property& property : catalog()) {
    list.push_back(
        {{"id", property.id}, {"statement", property.statement}, {"sees", property.faults}});
  }
  return {{"properties", list}};
}

Json faults_json() {
  auto list = Json::array();
  for (const auto& fault : kernels::list_faults()) {
    list.push_back({{"name", fault.name},
                    {"target", fault.target},
                    {"kind", fault.kind},
                    {"statement", fault.statement},
                    {"one_row", fault.one_row},
                    {"reports", fault.reports},
                    {"from_length", fault.from_length}});
  }
  return {{"faults", list}};
}

Json grids_json() {
  auto list = Json::array();
  for (const Grid& grid : grids()) {
    list.push_back({{"name", grid.name},
                    {"configurations", grid.count},
                    {"statement", grid.statement},
                    {"arithmetic", grid.arithmetic}});
  }
  return {{"grids", list}};
}

void print(const Json& json, std::ostream& out) {
  for (const auto& item : json.begin().value()) {
    if (item.contains("id")) {
      out << fmt::format("{:<26} {}\n", item["id"].get<std::string>(),
                         item["statement"].get<std::string>());
    } else if (item.contains("available")) {
      const bool available = item["available"].get<bool>();
      out << fmt::format("{:<22} {:<10} {}\n", item["name"].get<std::string>(),
                         item["version"].get<std::string>(),
                         available ? "available" : item["reason"].get<std::string>());
    } else if (item.contains("configurations")) {
      out << fmt::format("{:<16} {:>9}  {}\n", item["name"].get<std::string>(),
                         with_commas(item["configurations"].get<std::int64_t>()),
                         item["statement"].get<std::string>());
    } else {
      out << fmt::format("{}+{:<32} {:<18} {}\n", item["target"].get<std::string>(),
                         item["name"].get<std::string>(), item["kind"].get<std::string>(),
                         item["statement"].get<std::string>());
    }
  }
}

}  // namespace

int list_command(const ListOptions& options, CommandContext& context) {
  const Json list = options.what == "targets"      ? targets_json()
                    : options.what == "properties" ? properties_json()
                    : options.what == "grids"      ? grids_json()
                                                   : faults_json();
  if (options.json) {
    context.out << list.dump(1) << "\n";
  } else {
    print(list, context.out);
  }
  return kHeld;
}

}  // namespace kvcheck::properties
