// Lanes without an instruction set: the same bits as the others on any processor, slowly.

struct Lanes {
  struct V {
    float lane[8];
  };
  static constexpr std::int64_t kWidth = 8;
  static constexpr std::int64_t kKeys = 1;

  template <class Function>
  static V each(Function function) {
    V result;
    for (int i = 0; i < 8; ++i) result.lane[i] = function(i);
    return result;
  }

  static V zero() { return set(0); }
  static V set(float value) {
    return each([&](int) { return value; });
  }
  static V load(const float* from) {
    return each([&](int i) { return from[i]; });
  }
  static void store(V value, float* to) { std::copy_n(value.lane, 8, to); }
  static V add(V a, V b) {
    return each([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static V sub(V a, V b) {
    return each([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static V mul(V a, V b) {
    return each([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static V div(V a, V b) {
    return each([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  static V max(V a, V b) {
    return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static V fma(V a, V b, V c) {
    return each([&](int i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
  }
  static V fnma(V a, V b, V c) {
    return each([&](int i) { return std::fma(-a.lane[i], b.lane[i], c.lane[i]); });
  }
  static void largest(const V* values, float* to) {
    for (int i = 0; i < 4; ++i) {
      float most = values[i].lane[0];
      for (const float lane : values[i].lane) most = most > lane ? most : lane;
      to[i] = most;
    }
  }
  static V select(std::uint32_t bits, V value, V other) {
    return each([&](int i) { return (bits >> i & 1) != 0 ? value.lane[i] : other.lane[i]; });
  }
  static std::uint32_t above(V a, V b) {
    std::uint32_t bits = 0;
    for (int i = 0; i < 8; ++i) bits |= static_cast<std::uint32_t>(a.lane[i] > b.lane[i]) << i;
    return bits;
  }
  static V unless_less(V a, V b, V value) {
    return each([&](int i) { return a.lane[i] < b.lane[i] ? 0.0f : value.lane[i]; });
  }
  static V one_nan(V value) {
    return each([&](int i) {
      return value.lane[i] == value.lane[i] ? value.lane[i]
                                            : std::numeric_limits<float>::quiet_NaN();
    });
  }
  static V times_power_of_two(V value, V, V shifted) {
    return each([&](int i) {
      const auto bits = std::bit_cast<std::uint32_t>(shifted.lane[i]) << 23;
      return value.lane[i] * std::bit_cast<float>(bits + 0x3f800000u);
    });
  }
  static void prefetch(const std::byte*) {}

  static V load_query(const float* from) { return load(from); }
  template <class Element>
  static V load_keys(const Element* low, const Element*) {
    return load_value(low);
  }
  template <class Element>
  static V load_value(const Element* from) {
    return each([&](int i) { return element_at(from, i); });
  }

  static void reduce(const V* a, const V* b, float* to_a, float* to_b) {
    for (int v = 0; v < 4; ++v) {
      to_a[v] = sum(a[v]);
      to_b[v] = sum(b[v]);
    }
  }

 private:
  static float sum(V value) {
    const float* const x = value.lane;
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
  }
};
