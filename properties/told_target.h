// A target that is told each scenario before it is run.
#pragma once

#include "kernels/target.h"
#include "model/scenario.h"

namespace kvcheck::properties {

/// Answers from a model rather than from tensors (audit/modelled_target.h). execute() tells it the
/// scenario and then opens the session that runs it.
class ToldTarget : public kernels::Target {
 public:
  /// The next session runs `scenario`, step by step.
  virtual void tell(const model::Scenario& scenario) = 0;
};

}  // namespace kvcheck::properties
