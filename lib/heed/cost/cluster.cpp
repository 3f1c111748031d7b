#include "heed/cost/cluster.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "heed/base/error.h"

namespace heed {
namespace {

// A large message is announced, asked for and sent: three times the latency.
constexpr double kLargeMessage = 3;
// The number of short agreements of all ranks in an update: losses, norms, the time, and signals. In each, log2(ranks)
// messages follow one another, to one rank and back.
constexpr double kAgreements = 4;

/// Returns a number that one of the units follows, in these units; -1 for another text.
double amount(std::string_view text, std::initializer_list<std::pair<std::string_view, double>> units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return -1;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [unit, factor] : units)
    if (rest == unit) return value * factor;
  return -1;
}

}  // namespace

Cluster Cluster::parse(const std::string& option, const std::string& text) {
  const auto fail = [&](const std::string& what) {
    throw UsageError(option + " " + text + ": " + what + " (such as nodes=16,bandwidth=25G,latency=5us)");
  };
  Cluster out{.nodes = 0, .bandwidth = 0, .latency = -1};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    const std::size_t sign = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, sign), value = part.substr(std::min(sign + 1, part.size()));
    if (name == "nodes") {
      const double nodes = amount(value, {{"", 1}});
      if (nodes < 1 || nodes > 100000 || nodes != std::floor(nodes)) fail("nodes is a number from 1 to 100000");
      out.nodes = static_cast<int>(nodes);
    } else if (name == "bandwidth") {
      out.bandwidth = amount(value, {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}) / 8;
      if (!(out.bandwidth > 0)) fail("bandwidth is a number of bits a second");
    } else if (name == "latency") {
      out.latency = amount(value, {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}});
      if (!(out.latency >= 0)) fail("latency is a time in s, ms, us or ns");
    } else {
      fail("'" + std::string(part) + "' is none of nodes=, bandwidth= and latency=");
    }
    begin = end + 1;
  }
  if (out.nodes == 0 || out.bandwidth == 0 || out.latency < 0) fail("nodes, bandwidth and latency are needed");
  return out;
}

double Cluster::exchange_seconds(int ranks, double sums, double bytes) const {
  if (ranks == 1) return 0;
  const double sent = (sums + 1) * bytes * (ranks - 1) / ranks;
  // The sums are sent to all others at once; the parameters go round from rank to rank.
  const double messages = kLargeMessage + kLargeMessage * (ranks - 1) + kAgreements * 2 * std::ceil(std::log2(ranks));
  return sent / bandwidth + messages * latency;
}

}  // namespace heed
