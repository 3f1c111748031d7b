// Trees in brackets: the reader refuses or accepts any line, and what it accepts survives the way to a linear tree and
// back, and equals itself by evalb's rules.
#include "fuzz.h"
#include "heed/base/error.h"
#include "heed/metrics/evalb.h"
#include "heed/text/trees/linear_tree.h"
#include "heed/text/trees/tree.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace heed;
  const std::string line(reinterpret_cast<const char*>(data), size);
  std::string linear, leaves, again;
  try {
    linearize_tree(line, false, linear);
    tree_leaves(line, leaves);
  } catch (const LineError& error) {
    fuzz::require(std::string(error.at("f", 1, line).what()).starts_with("f:1:"), "a mistake has a place");
    return 0;
  }
  if (linear.empty()) return 0;  // a blank line
  const std::string tree = tree_of_linear(linear, words_of_line(leaves));
  linearize_tree(tree, false, again);
  fuzz::require(again == linear, "the linear tree of the tree of a linear tree");
  tree_leaves(tree, again);
  fuzz::require(again == leaves, "the words of the tree of a linear tree");

  const EvalbMetric metric(EvalbOptions{});
  std::vector<double> row(metric.width());
  const std::string_view gold = line;
  const auto counter = metric.counter();
  counter->set_references({&gold, 1});
  counter->count(line, row);
  const EvalbCounts counts = EvalbMetric::statistics(row).all;
  fuzz::require(counts.matched == counts.gold && counts.matched == counts.test, "a tree has its own brackets");
  fuzz::require(counts.tags == counts.words, "a tree has its own tags");
  return 0;
}
