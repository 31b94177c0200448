// The optional inputs and attributes of a session.
#include "kernels/cpu/feature_check.h"

#include <cmath>
#include <initializer_list>
#include <string_view>

#include <fmt/ranges.h>

#include "kernels/cpu/request_check.h"

namespace kvcheck::kernels {

using namespace std::string_view_literals;

namespace {

Reason of_gqa_only(const SessionConfig& config) {
  const std::string remedy = "belongs to gqa; leave it out with attention";
  if (config.smooth_softmax) return refuse("smooth_softmax", "true", remedy);
  if (config.head_sink) return refuse("head_sink", "given", remedy);
  if (config.rotary) return refuse("rotary", "given", remedy);
  if (config.qk_norm) return refuse("qk_norm", "given", remedy);
  if (config.packed_qkv) return refuse("packed_qkv", "true", remedy);
  if (config.quantisation.quantised()) {
    return refuse("quantisation.kind", config.quantisation.kind, remedy);
  }
  return std::nullopt;
}

Reason of_attention_only(const SessionConfig& config) {
  if (config.input_rank != 4) {
    return refuse("input_rank", config.input_rank, "belongs to attention; use 4 with gqa");
  }
  if (config.softmax_precision) {
    return refuse("softmax_precision", to_string(*config.softmax_precision),
                  "belongs to attention; leave it out with gqa");
  }
  return std::nullopt;
}

Reason check_intermediate(const SessionConfig& config) {
  const std::string& kind = config.qk_output;
  if (kind == "none"sv) return std::nullopt;
  const bool early = kind == "raw"sv || kind == "softcapped"sv;
  if (!early && kind != "biased"sv && kind != "probabilities"sv) {
    return refuse("qk_output", kind, "must be none, raw, softcapped, biased or probabilities");
  }
  if (config.op != "gqa"sv) return std::nullopt;
  if (early) return refuse("qk_output", kind, "gqa knows biased and probabilities");
  if (config.layout != "full"sv) {
    return refuse("qk_output", kind, fmt::format("must be none with layout {}", config.layout));
  }
  return std::nullopt;
}

Reason check_rotary(const SessionConfig& config) {
  if (!config.rotary) return std::nullopt;
  const Tensor& cos = config.rotary->cos;
  if (cos.shape.size() != 2 || cos.shape[0] < 1 || cos.shape[1] < 1 ||
      cos.shape[1] > config.head_size / 2) {
    return refuse("rotary.cos", shape_text(cos.shape),
                  fmt::format("its shape must be [rows, lanes/2] with lanes up to head_size ({})",
                              config.head_size));
  }
  return first_of([&] { return check_tensor("rotary.cos", cos, config.element_type, cos.shape); },
                  [&] {
                    return check_tensor("rotary.sin", config.rotary->sin, config.element_type,
                                        cos.shape);
                  });
}

Reason check_norm(const SessionConfig& config) {
  if (!config.qk_norm) return std::nullopt;
  const QkNormConfig& norm = *config.qk_norm;
  if (!std::isfinite(norm.epsilon) || norm.epsilon <= 0) {
    return refuse("qk_norm.epsilon", norm.epsilon, "must be finite and above 0");
  }
  const Shape lanes{config.head_size};
  return first_of(
      [&] {
        return check_tensor("qk_norm.query_weight", norm.query_weight, config.element_type, lanes);
      },
      [&] {
        return check_tensor("qk_norm.key_weight", norm.key_weight, config.element_type, lanes);
      });
}

Reason check_quantisation(const SessionConfig& config) {
  const QuantisationConfig& codes = config.quantisation;
  if (!codes.quantised()) return std::nullopt;
  if (codes.kind != "int8"sv && codes.kind != "int4"sv && codes.kind != "fp8"sv) {
    return refuse("quantisation.kind", codes.kind, "must be none, int8, int4 or fp8");
  }
  if (config.element_type == ElementType::f64) {
    return refuse("quantisation.kind", codes.kind, "must be none for element_type f64");
  }
  const Shape scales = codes.per_channel ? Shape{config.kv_heads, config.head_size} : Shape{1};
  return first_of(
      [&] {
        return check_tensor("quantisation.key_scale", codes.key_scale, ElementType::f32, scales);
      },
      [&] {
        return check_tensor("quantisation.value_scale", codes.value_scale, ElementType::f32,
                            scales);
      });
}

Reason check_launch(const SessionConfig& config) {
  if (!config.launch) return std::nullopt;
  constexpr std::int64_t kWarp = 32, kMostThreads = 1024;
  const LaunchConfig& launch = *config.launch;
  const auto one_of = [](const char* field, const std::string& name,
                         std::initializer_list<const char*> known) -> Reason {
    for (const char* each : known) {
      if (name == each) return std::nullopt;
    }
    return refuse(field, name, fmt::format("must be one of {}", fmt::join(known, ", ")));
  };
  return first_of(
      [&] {
        return one_of("launch.order", launch.order,
                      {"lockstep", "random", "reverse", "priority", "starve"});
      },
      [&] {
        return one_of("launch.kernel", launch.kernel,
                      {"any", "unfused", "decode", "decode_matrix", "prefill"});
      },
      [&]() -> Reason {
        if (launch.threads >= 0 && launch.threads <= kMostThreads && launch.threads % kWarp == 0) {
          return std::nullopt;
        }
        return refuse(
            "launch.threads", launch.threads,
            fmt::format("must be a multiple of {} up to {}; 0 = any", kWarp, kMostThreads));
      },
      [&]() -> Reason {
        if (launch.split_positions >= 0 && launch.split_positions <= kMaxLength)
          return std::nullopt;
        return refuse("launch.split_positions", launch.split_positions,
                      fmt::format("must be between 0 and {}; 0 = any", kMaxLength));
      });
}

}  // namespace

Reason check_features(const SessionConfig& config) {
  if (!std::isfinite(config.softcap) || config.softcap < 0) {
    return refuse("softcap", config.softcap, "must be finite and at least 0; 0 is off");
  }
  if (config.threads < 0) {
    return refuse("threads", config.threads, "must be at least 0; 0 = as many as there are");
  }
  if (config.input_rank != 3 && config.input_rank != 4) {
    return refuse("input_rank", config.input_rank, "must be 3 or 4");
  }
  return first_of(
      [&] { return config.op == "gqa"sv ? of_attention_only(config) : of_gqa_only(config); },
      [&]() -> Reason {
        if (!config.softmax_precision) return std::nullopt;
        switch (*config.softmax_precision) {
          case ElementType::f32:
          case ElementType::f16:
          case ElementType::bf16:
          case ElementType::f64:
            return std::nullopt;
          default:
            return refuse("softmax_precision", to_string(*config.softmax_precision),
                          "must be f32, f16, bf16 or f64");
        }
      },
      [&]() -> Reason {
        if (!config.head_sink) return std::nullopt;
        return check_tensor("head_sink", *config.head_sink, config.element_type,
                            {config.query_heads});
      },
      [&] { return check_intermediate(config); }, [&] { return check_rotary(config); },
      [&] { return check_norm(config); }, [&] { return check_quantisation(config); },
      [&] { return check_launch(config); });
}

Reason check_claimed_features(const Capabilities& can, const SessionConfig& config) {
  struct Use {
    bool used;
    const char* field;
    const char* feature;
  };
  const Use uses[] = {
      {config.rotary.has_value(), "rotary", "rotary"},
      {config.qk_norm.has_value(), "qk_norm", "qk_norm"},
      {config.qk_output != "none"sv, "qk_output", "qk_output"},
      {config.packed_qkv, "packed_qkv", "packed_qkv"},
      {config.softmax_precision.has_value(), "softmax_precision", "softmax_precision"},
      {config.launch.has_value(), "launch", "launches"},
  };
  for (const Use& use : uses) {
    if (use.used && !can.has(use.feature)) {
      return refuse(
          use.field, "given",
          fmt::format("{} does not compute it; leave it out, or use another target", can.name));
    }
  }
  return std::nullopt;
}

}  // namespace kvcheck::kernels
