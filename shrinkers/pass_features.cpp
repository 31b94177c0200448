// The pass over optional features: each is tried without, then with its simplest setting.
#include "shrinkers/edits.h"
#include "shrinkers/passes.h"

namespace kvcheck::shrinkers {
namespace {

using model::Scenario;

/// Proposes the scenario after `edit`, unless that changes nothing.
template <class Edit>
bool propose_edit(Attempt& attempt, Edit edit) {
  Scenario s = attempt.current();
  edit(s);
  return s != attempt.current() && attempt.propose(s);
}

void shrink_rotary(Attempt& attempt) {
  if (!attempt.current().rotary) return;
  if (propose_edit(attempt, [](Scenario& s) { s.rotary.reset(); })) return;
  propose_edit(attempt, [](Scenario& s) { s.rotary->position_ids.reset(); });
  propose_edit(attempt, [](Scenario& s) { s.rotary->interleaved = false; });
  propose_edit(attempt, [](Scenario& s) { s.rotary->dim = 0; });
  if (!attempt.current().rotary->position_ids) return;
  propose_edit(attempt, [](Scenario& s) { s.rotary->position_ids->extra_columns = 0; });
  propose_edit(attempt, [](Scenario& s) { s.rotary->position_ids->shift = 0; });
  propose_edit(attempt, [](Scenario& s) { s.rotary->position_ids->stride = 1; });
}

void shrink_quantisation(Attempt& attempt) {
  propose_edit(attempt, [](Scenario& s) { s.cache.quantisation = {}; });
  propose_edit(attempt, [](Scenario& s) { s.cache.quantisation.per_channel = false; });
}

/// What is left names a launch that matters: often the fault shows in any order.
void shrink_launch(Attempt& attempt) {
  if (!attempt.current().launch) return;
  if (propose_edit(attempt, [](Scenario& s) { s.launch.reset(); })) return;
  propose_edit(attempt, [](Scenario& s) { s.launch->threads = 0; });
  propose_edit(attempt, [](Scenario& s) { s.launch->split_positions = 0; });
  propose_edit(attempt, [](Scenario& s) { s.launch->kernel = model::LaunchKernel::any; });
  propose_edit(attempt, [](Scenario& s) {
    s.launch->order = model::LaunchOrder::lockstep;
    s.launch->seed = 0;
  });
  propose_edit(attempt, [](Scenario& s) { s.launch->order = model::LaunchOrder::reverse; });
  propose_edit(attempt, [](Scenario& s) { s.launch->seed = 0; });
}

void shrink_mask_shape(Attempt& attempt) {
  propose_edit(attempt, [](Scenario& s) { s.mask.missing_columns = 0; });
  propose_edit(attempt, [](Scenario& s) { s.mask.one_entry = false; });
  propose_edit(attempt, [](Scenario& s) { s.mask.one_head = false; });
  propose_edit(attempt, [](Scenario& s) { s.mask.one_query = false; });
}

}  // namespace

void shrink_features(Attempt& attempt) {
  shrink_quantisation(attempt);
  shrink_rotary(attempt);
  propose_edit(attempt, [](Scenario& s) { s.qk_norm.reset(); });
  propose_edit(attempt, [](Scenario& s) { s.softcap = 0; });
  propose_edit(attempt, [](Scenario& s) { s.head_sink = false; });
  propose_edit(attempt, [](Scenario& s) { s.fill.sink_logit = 0; });
  propose_edit(attempt, [](Scenario& s) { s.smooth_softmax = false; });
  propose_edit(attempt, [](Scenario& s) { s.qk_output = model::QkOutput::none; });
  propose_edit(attempt, [](Scenario& s) { s.right_window_size.reset(); });
  propose_edit(attempt, [](Scenario& s) { s.packed_qkv = false; });
  propose_edit(attempt, [](Scenario& s) { s.call_change.clear(); });
  propose_edit(attempt, [](Scenario& s) { s.input_rank = 4; });
  propose_edit(attempt, [](Scenario& s) { s.softmax_precision.reset(); });
  shrink_mask_shape(attempt);
  shrink_launch(attempt);
}

}  // namespace kvcheck::shrinkers
