#include "heed/inspect/attention_html.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace heed;

TEST_CASE("the page of attention maps holds its data, whatever the tokens are, and asks for nothing else") {
  const AttentionMap map{.kind = "cross",
                         .layer = 1,
                         .head = 2,
                         .rows = {"</script>", "<!--"},
                         .columns = {"a\tb", "日本", "</s>"},
                         .weights = {0.25F, 0.5F, 0.25F, 0, 0, 1}};
  const AttentionSection sections[] = {{"line 1: <b> & \"c\"", {map}}, {"line 2", {}}};
  const std::string page = attention_html(sections);
  const std::string mark = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(mark) + mark.size(), end = page.find("</script>", begin);
  const auto data = nlohmann::json::parse(page.substr(begin, end - begin));
  REQUIRE(data["sentences"].size() == 2);
  CHECK(data["sentences"][0]["heading"] == "line 1: <b> & \"c\"");
  const auto& one = data["sentences"][0]["maps"][0];
  CHECK(one["title"] == "cross attention, layer 1, head 2");
  CHECK(one["rows"] == nlohmann::json({"</script>", "<!--"}));
  CHECK(one["columns"][1] == "日本");
  CHECK(one["weights"] == nlohmann::json({2500, 5000, 2500, 0, 0, 10000}));
  CHECK(data["colors"].size() == 256);
  CHECK(data["sentences"][1]["maps"].empty());
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.ends_with("</html>\n"));
  for (const char* outside : {"http://", "https://", "src=", "@import", "href="}) {
    // The name of SVG's namespace is an address that nothing fetches.
    std::string rest = page;
    const std::string space = "http://www.w3.org/2000/svg";
    rest.erase(rest.find(space), space.size());
    CAPTURE(outside);
    CHECK(rest.find(outside) == std::string::npos);
  }
}

// A function of JavaScript takes some 100,000 arguments at most, and without arguments Math.max() is -Infinity.
TEST_CASE("the page gives no list of numbers to a function as its arguments, as a map may have many or none") {
  const AttentionMap map{.kind = "cross", .layer = 1, .head = 1, .rows = {"a"}};
  const AttentionSection sections[] = {{"line 1", {map}}};
  const std::string page = attention_html(sections);
  CHECK(page.find("\"columns\":[],\"weights\":[]") != std::string::npos);
  CHECK(page.find("Math.max(...") == std::string::npos);
  CHECK(page.find(", ...map") == std::string::npos);
}
