#include "kernels/simt/counters.h"

namespace kvcheck::kernels::simt {

void Counters::add(const Counters& other) {
  shared_accesses += other.shared_accesses;
  bank_conflicts += other.bank_conflicts;
  global_loads += other.global_loads;
  global_load_bytes += other.global_load_bytes;
  global_load_sectors += other.global_load_sectors;
  global_stores += other.global_stores;
  global_store_bytes += other.global_store_bytes;
  global_store_sectors += other.global_store_sectors;
  block_barriers += other.block_barriers;
  matrix_products += other.matrix_products;
}

}  // namespace kvcheck::kernels::simt
