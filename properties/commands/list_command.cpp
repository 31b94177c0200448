// kvcheck list: what there is, and why something cannot run here.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/registry.h"
#include "properties/catalog.h"
#include "properties/commands/command.h"

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
                    {"statement", fault.statement}});
  }
  return {{"faults", list}};
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
    } else {
      out << fmt::format("{}+{:<32} {:<18} {}\n", item["target"].get<std::string>(),
                         item["name"].get<std::string>(), item["kind"].get<std::string>(),
                         item["statement"].get<std::string>());
    }
  }
}

}  // namespace

void add_list_command(CLI::App& app, CommandContext& context) {
  auto what = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("list", "Show targets, properties or planted faults");
  command->add_option("what", *what, "targets, properties or faults")
      ->required()
      ->check(CLI::IsMember({"targets", "properties", "faults"}));
  command->add_flag("--json", *json, "As JSON");
  command->footer("Example: kvcheck list targets");
  command->callback([what, json, &context] {
    const Json list = *what == "targets"      ? targets_json()
                      : *what == "properties" ? properties_json()
                                              : faults_json();
    if (*json) {
      context.out << list.dump(1) << "\n";
    } else {
      print(list, context.out);
    }
  });
}

}  // namespace kvcheck::properties
