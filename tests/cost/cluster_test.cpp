#include "heed/cost/cluster.h"

#include <doctest/doctest.h>

#include "heed/base/error.h"

using namespace heed;

TEST_CASE("a cluster is described by its machines, bandwidth and latency, in any order") {
  const Cluster a = Cluster::parse("--cluster", "nodes=16,bandwidth=25G,latency=5us");
  CHECK(a.nodes == 16);
  CHECK(a.bandwidth == doctest::Approx(25e9 / 8));
  CHECK(a.latency == doctest::Approx(5e-6));
  const Cluster b = Cluster::parse("--cluster", "latency=0.2ms,nodes=2,bandwidth=900M");
  CHECK(b.bandwidth == doctest::Approx(900e6 / 8));
  CHECK(b.latency == doctest::Approx(2e-4));
}

TEST_CASE("a wrong description says what is wrong") {
  const auto message = [](const std::string& text) -> std::string {
    try {
      Cluster::parse("--cluster", text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string example = " (such as nodes=16,bandwidth=25G,latency=5us)";
  CHECK(message("") == "--cluster : '' is none of nodes=, bandwidth= and latency=" + example);
  CHECK(message("nodes=2,bandwidth=1G") ==
        "--cluster nodes=2,bandwidth=1G: nodes, bandwidth and latency are needed" + example);
  for (const char* nodes : {"nodes=0", "nodes=", "nodes=2.5", "nodes=2x", "nodes", "nodes=-1", "nodes=nan"})
    CHECK(message(nodes) == "--cluster " + std::string(nodes) + ": nodes is a number from 1 to 100000" + example);
  for (const char* bandwidth : {"bandwidth=0G", "bandwidth=G", "bandwidth=5us", "bandwidth=nan", "bandwidth=-1"})
    CHECK(message(bandwidth) ==
          "--cluster " + std::string(bandwidth) + ": bandwidth is a number of bits a second" + example);
  for (const char* latency : {"latency=5", "latency=-1us", "latency=us", "latency=nanus"})
    CHECK(message(latency) == "--cluster " + std::string(latency) + ": latency is a time in s, ms, us or ns" + example);
  CHECK(message("nodes=2;latency=1s") == "--cluster nodes=2;latency=1s: nodes is a number from 1 to 100000" + example);
  CHECK(message("speed=2") == "--cluster speed=2: 'speed=2' is none of nodes=, bandwidth= and latency=" + example);
}

TEST_CASE("the network's time: bytes by the bandwidth, and messages by the latency") {
  const Cluster cluster{.nodes = 8, .bandwidth = 1e9, .latency = 1e-3};
  CHECK(cluster.exchange_seconds(1, 1, 1e9) == 0);
  // Half of the sum and half of the parameters are sent; 3 latencies each, and 4 agreements there and back.
  CHECK(cluster.exchange_seconds(2, 1, 1e9) == doctest::Approx(1 + 14e-3));
  CHECK(cluster.exchange_seconds(8, 1, 8e9) == doctest::Approx(14 + 48e-3));
}
