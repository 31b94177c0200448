// Faults that can be planted into kernels of kernels/cuda, each by a template parameter, so that
// the healthy kernel holds nothing of them. list_device_faults() states what each does wrong.
#pragma once

namespace kvcheck::kernels::device {

enum class Fault {
  none,
};

/// Whether the instantiation with `planted` has the fault `one`.
constexpr bool has(Fault planted, Fault one) { return planted == one; }

}  // namespace kvcheck::kernels::device
