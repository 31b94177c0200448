// The table of one instruction set. Included after everything else.

/// One query as f32, times the scales of the keys' lanes where there are any, times that of the
/// logits.
template <class Element>
void load_query(const std::byte* row, const float* scales, float scale, std::int64_t lanes,
                std::int64_t padded, float* to) {
  widen_rows<Element>(row, 0, 1, lanes, padded, to);
  const Lanes::V by = Lanes::set(scale);
  std::int64_t lane = 0;
  for (; lane + Lanes::kWidth <= lanes; lane += Lanes::kWidth) {
    Lanes::V value = Lanes::load(to + lane);
    if (scales != nullptr) value = Lanes::mul(value, Lanes::load(scales + lane));
    Lanes::store(Lanes::mul(value, by), to + lane);
  }
  for (; lane < lanes; ++lane) {
    if (scales != nullptr) to[lane] *= scales[lane];
    to[lane] *= scale;
  }
}

inline const Kernels& table(const char* isa) {
  static const Kernels kernels{isa,
                               {chunk_pass<float>, chunk_pass<Half>, chunk_pass<Bfloat>,
                                chunk_pass<std::int8_t>, chunk_pass<Nibbles>},
                               {load_query<float>, load_query<Half>, load_query<Bfloat>},
                               merge_rows,
                               finish_row,
                               exp_of_one};
  return kernels;
}
