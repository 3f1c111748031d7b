#include "heed/cost/cost_part.h"

#include <cstdio>

namespace heed {
namespace {

std::string amount(double amount, double seconds, double count, std::string_view unit, double scale, const char* what) {
  char out[160];
  std::snprintf(out, sizeof out, "%.3g %s a %.*s at %.3g G%s/s", amount / count / scale, what,
                static_cast<int>(unit.size()), unit.data(), seconds > 0 ? 1e-9 * amount / seconds : 0.0, what + 1);
  return out;
}

}  // namespace

std::string describe(const CostPart& part, double all, double count, std::string_view unit) {
  char share[32];
  std::snprintf(share, sizeof share, "%4.1f %%", 100 * part.seconds / all);
  std::string out = share;
  if (part.operations > 0) out += ": " + amount(part.operations, part.seconds, count, unit, 1e6, "Mflop");
  if (part.bytes > 0)
    out += (part.operations > 0 ? ", " : ": ") + amount(part.bytes, part.seconds, count, unit, 1e3, "kB");
  return out;
}

}  // namespace heed
