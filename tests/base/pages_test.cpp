#include "heed/base/pages.h"

#include <doctest/doctest.h>

#include <cstdint>

using namespace heed;

TEST_CASE("pages grow with what is in them, from nothing too, and are zeros behind") {
  for (const PageSize size : {PageSize::small, PageSize::huge}) {
    Pages pages(0, size);
    std::size_t written = 0;
    for (const std::size_t bytes : {std::size_t{5000}, std::size_t{3} << 20, std::size_t{9} << 20}) {
      pages.grow(bytes);
      REQUIRE(pages.size() >= bytes);
      CHECK(reinterpret_cast<std::uintptr_t>(pages.data()) % (size == PageSize::huge ? std::size_t{2} << 20 : 4096) ==
            0);
      for (std::size_t i = 0; i < written; i += 1000) CHECK(pages.data()[i] == static_cast<char>(i / 1000));
      for (std::size_t i = written; i < bytes; i += 1000) CHECK(pages.data()[i] == 0);
      for (std::size_t i = 0; i < bytes; i += 1000) pages.data()[i] = static_cast<char>(i / 1000);
      written = bytes;
    }
    const char* const there = pages.data();
    pages.grow(100);
    CHECK(pages.data() == there);
  }
}

TEST_CASE("pages that are forgotten leave those around them as they are") {
  constexpr std::size_t kBytes = std::size_t{1} << 20, kFrom = 100001, kTo = 900001;
  constexpr std::size_t kMostOfPage = std::size_t{1} << 16;
  Pages pages(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) pages.data()[i] = 'x';
  pages.forget(kFrom, kTo);
  pages.forget(kTo, kTo + 1);
  for (std::size_t i = 0; i < kBytes; ++i) {
    if (i < kFrom || i >= kTo) REQUIRE(pages.data()[i] == 'x');
#ifdef __linux__
    if (i >= kFrom + kMostOfPage && i + kMostOfPage < kTo) REQUIRE(pages.data()[i] == 0);
#endif
  }
}
