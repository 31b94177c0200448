// The table of one instruction set. Included after everything else.

template <class Element>
void widen_row(const std::byte* row, std::int64_t lanes, std::int64_t padded, float* to) {
  widen_rows<Element>(row, 0, 1, lanes, padded, to);
}

inline const Kernels& table(const char* isa) {
  static const Kernels kernels{isa,
                               {chunk_pass<float>, chunk_pass<Half>, chunk_pass<Bfloat>,
                                chunk_pass<std::int8_t>, chunk_pass<Nibbles>},
                               {widen_row<float>, widen_row<Half>, widen_row<Bfloat>,
                                widen_row<std::int8_t>, widen_row<Nibbles>},
                               merge_rows,
                               finish_row,
                               exp_of_one};
  return kernels;
}
