// The catalogue.
#include "model/wrong_models.h"

#include <algorithm>

namespace kvcheck::model {

std::span<const WrongModel> wrong_models() {
  static const std::vector<WrongModel> all = [] {
    std::vector<WrongModel> models;
    for (const auto group :
         {wrong_causality, wrong_windows, wrong_masks, wrong_rows, wrong_logits, wrong_operands}) {
      for (const WrongModel& model : group()) models.push_back(model);
    }
    return models;
  }();
  return all;
}

const WrongModel* find_wrong_model(std::string_view name) {
  const auto models = wrong_models();
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const WrongModel& model) { return model.name == name; });
  return found == models.end() ? nullptr : &*found;
}

}  // namespace kvcheck::model
