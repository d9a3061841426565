#include "diagnosis/report/plot.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "diagnosis/report/html.h"

namespace cutaway::report {
namespace {

constexpr double kHeight = 300, kLeft = 58, kRight = 14, kTop = 34, kBottom = 40, kLane = 18;
constexpr size_t kMaxPoints = 600, kMaxTips = 150;

struct Scale {
  double low = -8, high = 0;             // powers of ten
  bool has_zero = false, has_infinite = false;
  double top = kTop, bottom = kHeight - kBottom;   // of the logarithmic part

  double y(double error) const {
    if (!std::isfinite(error)) return kTop;
    if (error == 0) return kHeight - kBottom;
    return bottom - (std::log10(error) - low) / (high - low) * (bottom - top);
  }
};

Scale make_scale(const std::vector<AnalysisRow>& rows) {
  Scale s;
  double least = INFINITY, most = 0;
  for (const AnalysisRow& r : rows)
    for (const auto& e : {r.local_error, r.cumulative_error}) {
      if (!e) continue;
      if (!std::isfinite(*e)) s.has_infinite = true;
      else if (*e == 0) s.has_zero = true;
      else { least = std::min(least, *e); most = std::max(most, *e); }
    }
  if (most > 0) {
    s.low = std::floor(std::log10(least));
    s.high = std::max(std::ceil(std::log10(most)), s.low + 1);
  }
  if (s.has_infinite) s.top += kLane;
  if (s.has_zero) s.bottom -= kLane;
  return s;
}

/// The larger error; what is not a number counts as largest, what was not measured as smallest.
std::optional<double> larger(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return a ? a : b;
  if (std::isnan(*a) || std::isnan(*b)) return NAN;
  return std::max(*a, *b);
}

}  // namespace

std::string plot_errors(const std::vector<AnalysisRow>& rows, double width, const std::string& id) {
  const Scale scale = make_scale(rows);
  const size_t n = rows.size();
  // So many nodes that several fall on one pixel: each stretch shows its largest error.
  const size_t stretch = (n + kMaxPoints - 1) / kMaxPoints;
  const auto x = [&](size_t i) { return n < 2 ? (kLeft + width - kRight) / 2 : kLeft + 8 + static_cast<double>(i) / static_cast<double>(n - 1) * (width - kLeft - kRight - 16); };

  std::string out = "<svg class=\"plot\" role=\"img\" aria-labelledby=\"" + id + "-title " + id + "-desc\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed(width) + " " + fixed(kHeight) + "\">\n";
  out += "<title id=\"" + id + "-title\">Error along the graph</title>\n<desc id=\"" + id + "-desc\">Local and cumulative error of " + base::count_of(n, "node") +
         " in program order, on a logarithmic scale from 1e" + fixed(scale.low, 0) + " to 1e" + fixed(scale.high, 0) + ".";
  const AnalysisRow* wrong = first_wrong(rows);
  if (wrong) out += " The first wrong node is " + escape(wrong->node) + ".";
  out += "</desc>\n";

  const auto grid = [&](double y, const std::string& label) {
    out += "<line class=\"grid\" x1=\"" + fixed(kLeft) + "\" x2=\"" + fixed(width - kRight) + "\" y1=\"" + fixed(y) + "\" y2=\"" + fixed(y) + "\"/><text class=\"tick\" x=\"" + fixed(kLeft - 8) + "\" y=\"" +
           fixed(y + 4) + "\" text-anchor=\"end\">" + label + "</text>\n";
  };
  const double step = std::max(1.0, std::ceil((scale.high - scale.low) / 6));
  for (double p = scale.low; p <= scale.high; p += step) grid(scale.bottom - (p - scale.low) / (scale.high - scale.low) * (scale.bottom - scale.top), p == 0 ? "1" : "1e" + fixed(p, 0));
  if (scale.has_zero) grid(kHeight - kBottom, "0");
  if (scale.has_infinite) grid(kTop, "inf, nan");

  if (wrong) {
    const auto at = static_cast<size_t>(wrong - rows.data());
    const double wx = x(at);
    const bool is_right = wx > width / 2;
    out += "<line class=\"wrong\" x1=\"" + fixed(wx) + "\" x2=\"" + fixed(wx) + "\" y1=\"" + fixed(kTop - 6) + "\" y2=\"" + fixed(kHeight - kBottom) + "\"/><text class=\"wrong-label\" x=\"" +
           fixed(is_right ? std::min(wx + 4, width - kRight) : std::max(wx - 4, kLeft)) + "\" y=\"" + fixed(kTop - 12) + "\" text-anchor=\"" + (is_right ? "end" : "start") + "\">first wrong: %" +
           escape(shorten(wrong->node, width < 500 ? 24 : 48)) + "</text>\n";
  }

  const auto series = [&](std::optional<double> AnalysisRow::*error, const std::string& name) {
    std::string d, dots;
    bool is_broken = true;
    for (size_t i = 0; i < n; i += stretch) {
      std::optional<double> e;
      for (size_t k = i; k < std::min(i + stretch, n); ++k) e = larger(e, rows[k].*error);
      if (!e) { is_broken = true; continue; }      // not measured: the line has a gap there
      d += std::string(is_broken ? "M" : "L") + fixed(x(i)) + " " + fixed(scale.y(*e)) + " ";
      is_broken = false;
      dots += "<circle class=\"" + name + "\" cx=\"" + fixed(x(i)) + "\" cy=\"" + fixed(scale.y(*e)) + "\" r=\"" + (n > 100 ? "1.6" : "3") + "\">" +
              (n <= kMaxTips ? "<title>%" + escape(rows[i].node) + " " + escape(rows[i].op) + ": " + name + " error " + scientific(*e) + "</title>" : "") + "</circle>";
    }
    if (!d.empty()) out += "<path class=\"line " + name + "\" d=\"" + d.substr(0, d.size() - 1) + "\"/>" + dots + "\n";
  };
  series(&AnalysisRow::cumulative_error, "cumulative");
  series(&AnalysisRow::local_error, "local");
  out += "<text class=\"tick\" x=\"" + fixed(kLeft) + "\" y=\"" + fixed(kHeight - 22) + "\">first node</text><text class=\"tick\" x=\"" + fixed(width - kRight) + "\" y=\"" + fixed(kHeight - 22) +
         "\" text-anchor=\"end\">last of " + std::to_string(n) + "</text>\n";
  const double ly = kHeight - 6;
  out += "<path class=\"line local\" d=\"M" + fixed(kLeft) + " " + fixed(ly - 4) + " h22\"/><text class=\"tick\" x=\"" + fixed(kLeft + 28) + "\" y=\"" + fixed(ly) + "\">local error</text><path class=\"line cumulative\" d=\"M" +
         fixed(kLeft + 120) + " " + fixed(ly - 4) + " h22\"/><text class=\"tick\" x=\"" + fixed(kLeft + 148) + "\" y=\"" + fixed(ly) + "\">cumulative error</text>\n";
  return out + "</svg>\n";
}

}  // namespace cutaway::report
