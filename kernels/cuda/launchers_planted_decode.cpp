// Faulty copies of decode, decode_matrix and merge, of f16, up to 64 lanes and one type of cache;
// what else is asked of them goes to the healthy kernels. Compiled with instrumentation.
#include "kernels/cuda/decode_launch.cuh"
#include "kernels/cuda/planted_tables.h"

namespace kvcheck::kernels::device {
namespace {

bool has_faulty_copy(const AttentionLaunch& how, const AttentionParameters& p, bool int8_cache) {
  return how.element == Element::f16 && how.int8_cache == int8_cache &&
         padded_head(p.head_size, p.value_head_size) == 64;
}

template <Fault kFault>
void faulty_decode(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  has_faulty_copy(how, p, kPlantedInInt8<kFault>) ? launch_decode<kFault>(queue, how, p)
                                                  : simt_kernels().decode(queue, how, p);
}

template <Fault kFault>
void faulty_decode_matrix(Queue& queue, const AttentionLaunch& how, const AttentionParameters& p) {
  has_faulty_copy(how, p, false) ? launch_decode_matrix<kFault>(queue, how, p)
                                 : simt_kernels().decode_matrix(queue, how, p);
}

template <Fault... kFaults>
bool plant_in_cores(Fault fault, KernelTable& table, FaultList<kFaults...>) {
  return ((fault == kFaults && (table.decode = faulty_decode<kFaults>, true)) || ...);
}

template <Fault... kFaults>
bool plant_in_matrix(Fault fault, KernelTable& table, FaultList<kFaults...>) {
  return ((fault == kFaults && (table.decode_matrix = faulty_decode_matrix<kFaults>, true)) || ...);
}

}  // namespace

bool plant_in_decode(Fault fault, KernelTable& table) {
  return plant_in_cores(fault, table, DecodeFaults()) ||
         plant_in_matrix(fault, table, MatrixFaults());
}

}  // namespace kvcheck::kernels::device
