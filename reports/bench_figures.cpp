// Rows of the record as lines and bars.
#include "reports/bench_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reports/bench_curve.h"
#include "reports/plot_axes.h"
#include "reports/svg.h"
#include "reports/text.h"

namespace kvcheck::reports {
namespace {

using properties::BenchRecord;
using properties::BenchRow;

using Line = std::vector<std::pair<double, double>>;

constexpr std::size_t kMostFigures = 4, kMostPeers = 6, kMostBars = 60, kCurvePoints = 60;

std::string peer_word(const BenchRow& row) { return row.peer.substr(0, row.peer.find(' ')); }

std::string_view colour_of(const std::string& peer) {
  if (peer == "onnxruntime") return "staged";
  if (peer == "openvino") return "passed";
  if (peer == "jax") return "rolled-back";
  return "evicted";
}

bool drawable(double value) { return std::isfinite(value) && value > 0; }

/// The least disturbed time counts where a row was timed beside several peers.
void note_least(std::map<double, double>& times, double at, double ms) {
  const auto [place, fresh] = times.emplace(at, ms);
  if (!fresh) place->second = std::min(place->second, ms);
}

Line line_of(const std::map<double, double>& times) { return {times.begin(), times.end()}; }

struct Times {
  std::map<double, double> ours;
  std::map<std::string, std::map<double, double>> peers;
};

std::pair<double, double> range_of(const Times& times, bool along) {
  double low = INFINITY, high = 0;
  const auto note = [&](const std::map<double, double>& line) {
    for (const auto& [at, ms] : line) {
      low = std::min(low, along ? at : ms);
      high = std::max(high, along ? at : ms);
    }
  };
  note(times.ours);
  for (const auto& peer : times.peers) note(peer.second);
  return {low, high};
}

std::string words_of(const Times& times) {
  std::string words = "ours:";
  for (const auto& [at, ms] : times.ours) words += fmt::format(" {} ms at T = {},", brief(ms), at);
  words.back() = '.';
  return words;
}

}  // namespace

std::vector<Element> time_figures(const BenchRecord& record) {
  std::map<std::string, Times> shapes;
  for (const BenchRow& row : record.rows) {
    if (row.what != "decode" || row.element_type != "f32" || row.T <= 0) continue;
    const auto length = static_cast<double>(row.T);
    Times& times = shapes[row.shape];
    if (drawable(row.ours_ms)) note_least(times.ours, length, row.ours_ms);
    if (drawable(row.peer_ms) && times.peers.size() < kMostPeers) {
      note_least(times.peers[peer_word(row)], length, row.peer_ms);
    }
  }
  std::vector<Element> figures;
  for (const auto& [shape, times] : shapes) {
    if (times.ours.size() < 2 || figures.size() >= kMostFigures) continue;
    const auto [short_T, long_T] = range_of(times, true);
    const auto [fast, slow] = range_of(times, false);
    const std::string id = "time-" + id_part(shape);
    Plot plot(id + "-plot", fmt::format("Decode time against T, f32, {}", shape), words_of(times),
              Axis(short_T, long_T, true), Axis(fast, slow, true), "T, tokens in the cache",
              "ms per step");
    std::size_t series = 0;
    plot.line(line_of(times.ours), "ours", "resident", series++);
    for (const auto& [peer, line] : times.peers) {
      plot.line(line_of(line), peer, colour_of(peer), series++);
    }
    figures.push_back(
        figure(id, plot.svg(),
               fmt::format(
                   "{} query heads/KV heads/head size, f32, one thread. Both axes are logarithmic; "
                   "a full cache grows along a line of slope 1.",
                   shape)));
  }
  return figures;
}

std::vector<Element> capacity_figures(const BenchRecord& record) {
  std::map<std::pair<std::string, std::int64_t>, Times> groups;
  for (const BenchRow& row : record.rows) {
    // Rows of other lengths show growth along T; each shape keeps to the one with most rows.
    if (row.what != "windowed" || row.window <= 0 || row.capacity < row.window ||
        row.id.find(".T") != std::string::npos) {
      continue;
    }
    const auto period = static_cast<double>(row.capacity - row.window + 1);
    Times& times = groups[{row.shape, row.window}];
    if (drawable(row.ours_ms)) note_least(times.ours, period, row.ours_ms);
  }
  std::vector<Element> figures;
  for (const auto& [group, times] : groups) {
    if (times.ours.size() < 2 || figures.size() >= kMostFigures) continue;
    const auto& [shape, window] = group;
    const Line ours = line_of(times.ours);
    const auto curve = fit_capacity_curve(ours);
    const auto periods = range_of(times, true), all_times = range_of(times, false);
    std::string found = "Too few capacities for a curve.";
    if (curve && curve->optimum) {
      found = fmt::format(
          "The fitted curve has its optimum sqrt(2 * shift / slope) at G = {}, that "
          "is C = W + {}: one move takes {} ms, one more resident row {} ms a step.",
          brief(*curve->optimum), brief(std::max(0.0, *curve->optimum - 1)), brief(curve->shift),
          brief(curve->slope));
    } else if (curve) {
      found = "The time does not grow both with the rows and with the moves: there is no optimum.";
    }
    const std::string id = fmt::format("capacity-{}-W{}", id_part(shape), window);
    Plot plot(id + "-plot", fmt::format("Windowed decode time against the capacity, {}", shape),
              found, Axis(periods.first, periods.second, true), Axis(0, all_times.second, false),
              "G = C - W + 1, steps between two moves", "ms per step");
    if (curve) {
      Path path;
      for (std::size_t i = 0; i <= kCurvePoints; ++i) {
        const double part = static_cast<double>(i) / kCurvePoints;
        const double period = periods.first * std::pow(periods.second / periods.first, part);
        const double x = plot.x(period), y = plot.y(std::max(0.0, curve->at(period)));
        i == 0 ? path.move(x, y) : path.line(x, y);
      }
      plot.add(stroked(path, "muted", 1.5, "5 4"));
      if (curve->optimum && *curve->optimum >= periods.first && *curve->optimum <= periods.second) {
        const double x = plot.x(*curve->optimum);
        plot.add(stroked(Path().move(x, plot.y(0)).line(x, plot.y(all_times.second)), "failed", 1.5,
                         "2 3"));
        plot.add(label(x + 4, plot.y(0) - 6, "predicted optimum"));
      }
    }
    plot.line(ours, "ours", "resident", 0);
    figures.push_back(figure(id, plot.svg(),
                             fmt::format("{}, window W = {}, f32. Dashed: base + slope * G / 2 + "
                                         "shift / G, fitted to ours. {}",
                                         shape, window, found)));
  }
  return figures;
}

Element roof_figure(const BenchRecord& record) {
  std::map<std::string, const BenchRow*> best;
  std::vector<std::string> order;
  for (const BenchRow& row : record.rows) {
    if (!drawable(row.roof)) continue;
    const auto [at, fresh] = best.emplace(row.id, &row);
    if (fresh) order.push_back(row.id);
    if (row.roof > at->second->roof) at->second = &row;
  }
  if (order.empty()) return Element("figure");
  constexpr double kNames = 330, kWide = 300, kRow = 20, kTop = 24;
  const std::size_t shown = std::min(order.size(), kMostBars);
  const double height = kTop + kRow * static_cast<double>(shown);
  Element svg = svg_frame("roof-plot", kNames + kWide + 90, height + 8, "Share of the roof",
                          "One bar for each row; the marks are the shares to reach.");
  for (const double tick : {0.0, .25, .5, .75, 1.0}) {
    const double x = kNames + kWide * tick;
    svg.add(stroked(Path().move(x, kTop - 4).line(x, height), "hairline", 1));
    svg.add(label(x, kTop - 8, brief(tick), Anchor::middle, "muted"));
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const BenchRow& row = *best[order[i]];
    const double y = kTop + kRow * static_cast<double>(i);
    svg.add(label(kNames - 8, y + 13, row.id, Anchor::end));
    const double length = kWide * std::min(1.0, row.roof);
    svg.add(filled(Path().rect(kNames, y + 3, length, kRow - 7), "resident"));
    for (const double goal : {row.roof_at_least, row.roof_aim}) {
      if (!drawable(goal) || goal > 1) continue;
      const double x = kNames + kWide * goal;
      svg.add(stroked(Path().move(x, y + 1).line(x, y + kRow - 2), "failed", 2));
    }
    svg.add(label(kNames + kWide + 10, y + 13, fmt::format("{:.2f}", row.roof)));
  }
  std::string caption =
      "Time that max(bytes / bandwidth, flops / FMA rate) allows, over the time measured. "
      "Bandwidth "
      "and rate were measured beside each row. Marks: least share and aim.";
  if (shown < order.size()) {
    caption += fmt::format(" {} of {} rows are shown.", shown, order.size());
  }
  return figure("roof-bars", svg, caption);
}

}  // namespace kvcheck::reports
