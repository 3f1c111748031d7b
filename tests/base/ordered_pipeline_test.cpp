#include "heed/base/ordered_pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>

using namespace heed;

TEST_CASE("a pipeline holds a bounded number of items, and of bytes") {
  static int freed;
  struct Item {
    std::size_t size = 0;
    int number = 0;
    std::size_t bytes() const { return size; }
    void free() { ++freed; }
  };
  constexpr int kItems = 300;
  for (const std::size_t size : {std::size_t{10}, std::size_t{1} << 20, std::size_t{100} << 20})
    for (const int threads : {1, 2, 5}) {
      CAPTURE(size);
      CAPTURE(threads);
      int read = 0, taken = 0, most = 0;
      std::atomic<int> worked = 0;
      freed = 0;
      OrderedPipeline<Item>(threads, {.read =
                                          [&](Item& item) {
                                            if (read == kItems) return false;
                                            item = {size, read++};
                                            most = std::max(most, read - taken);
                                            return true;
                                          },
                                      .ready = [] { return true; },
                                      .work = [&](Item&, int) { ++worked; },
                                      .take = [&](Item& item) { CHECK(item.number == taken++); }})
          .run();
      CHECK(taken == kItems);
      CHECK(worked == kItems);
      CHECK(freed == (size > 1000 ? kItems : 0));
      CHECK(static_cast<std::size_t>(most) <=
            OrderedPipeline<Item>::kItemsPerThread * static_cast<std::size_t>(threads));
      // An item is still read when the items in memory hold exactly the limit.
      CHECK(static_cast<std::size_t>(most - 1) * size <=
            OrderedPipeline<Item>::kBytesPerThread * static_cast<std::size_t>(threads));
    }
}
