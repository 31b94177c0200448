// What the lanes of a warp get from the operations that they do together.
#pragma once

#include "kernels/simt/runner.h"

namespace kvcheck::kernels::simt {

// Each is the `complete` of Runner::meet(); operands and results lie in Lane::exchanged.

/// sync_warp: memory accesses of these lanes are ordered. No other operation does that.
void complete_sync(Runner& runner, Meeting& meeting);
/// in[0] = bits, in[1] = argument, by 5 bits of it; out[0]. As shfl.sync of the PTX ISA: past the
/// last or first lane a lane gets what it brought. A source that did not take part is a defect.
void complete_exchange(Runner& runner, Meeting& meeting);
/// in[0] = predicate; out[0] = lanes that say yes, or 1 where any does, or where all do.
void complete_vote(Runner& runner, Meeting& meeting);
/// in[0] = value; out[0] = lanes that bring the same.
void complete_match(Runner& runner, Meeting& meeting);
/// address = the row of this lane, lane / 8 = number of its matrix; out = one word per matrix: of
/// row lane / 4 the elements 2 * (lane % 4) and the next; of the transposed matrix where asked.
void complete_load_matrix(Runner& runner, Meeting& meeting);
/// in = a[4], b[2], d[4]; out = d.
void complete_multiply_add(Runner& runner, Meeting& meeting);

}  // namespace kvcheck::kernels::simt
