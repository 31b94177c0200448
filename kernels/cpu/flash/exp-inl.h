// exp of non-positive numbers, in f32. Included after the lanes.
//
// x = n ln 2 + r, |r| <= ln(2)/2; e^r by a polynomial of degree 6 in r (minimax
// for the relative error, 0.06 units in the last place); times 2^n. Below -87.33654
// the result is 0. NaN stays NaN, -infinity gives 0.
//
// Over all 1,118,743,632 floats of [-87.33654, -0] the relative error is at most 7.706e-8 =
// 2^-23.630, at x = -0x1.abcacp+4, and 0.883 units in the last place; 99.527 % of the results are
// the nearest floats (exp_test.cpp with KVCHECK_EXP_ALL=1).

/// \pre no lane of x is above 0
inline Lanes::V exp_of(Lanes::V x) {
  using L = Lanes;
  const L::V magic = L::set(0x1.8p23f);
  const L::V shifted = L::fma(x, L::set(0x1.715476p0f), magic);
  const L::V n = L::sub(shifted, magic);
  L::V r = L::fnma(n, L::set(0x1.62e4p-1f), x);
  r = L::fnma(n, L::set(0x1.7f7d1cp-20f), r);
  L::V p = L::set(0x1.6a23dp-10f);
  p = L::fma(p, r, L::set(0x1.123a2p-7f));
  p = L::fma(p, r, L::set(0x1.5558f2p-5f));
  p = L::fma(p, r, L::set(0x1.555492p-3f));
  p = L::fma(p, r, L::set(0x1.fffffcp-2f));
  p = L::fma(p, r, L::set(1.0f));
  p = L::fma(p, r, L::set(1.0f));
  const L::V value = L::times_power_of_two(p, n, shifted);
  return L::unless_less(x, L::set(-0x1.5d589ep6f), value);
}

inline float exp_of_one(float x) {
  alignas(64) float lanes[16];
  Lanes::store(exp_of(Lanes::set(x)), lanes);
  return lanes[0];
}
