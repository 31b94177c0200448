// A target of every feature in plain double arithmetic, which keeps all tokens and evicts nothing.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/target.h"

namespace kvcheck::properties {

/// Claims what all_capabilities() lists, at double accumulation. `mistake` is one of
///   "rotary_by_row"       keys turn by their place in the step
///   "norm_without_weight" the norm's weights are left out
///   "sink_in_every_key"   the head sink is added to the logits
///   "scale_of_first_lane" a scale per channel is read as one per tensor
///   "codes_truncated"     codes are cut to integers towards zero
///   "qk_before_softcap"   qk_output hands out what was before softcap and bias
///   "right_window_off"    right_window_size is ignored
///   "cap_after_bias"      softcap caps the biased logit
///   "cap_before_scale"    softcap caps the product before the scale
///   "bias_from_oldest"    column 0 of the bias is that of the oldest resident key
///   "sink_ignored"        the sink is left out of the sum
///   "sink_with_value"     the sink brings the value 1 into every lane
///   "values_clamped"      values are clamped to +-8 where they are stored
/// or empty.
std::unique_ptr<kernels::Target> make_reference_target(std::string_view mistake = "");

}  // namespace kvcheck::properties
