#include "bench/pm/options.hpp"

#include "base/text.hpp"
#include "base/units.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>

namespace score::bench {

namespace {

constexpr const char* kUsage =
    "usage: scbench-pm [OPTION]...\n"
    "  --device D     shmem, udp, ethernet or ofi:PROVIDER (default shmem)\n"
    "  --size N[,N]   message sizes, 1 to 4M; K and M are powers of 1024 (default 8,1M)\n"
    "  --rounds N     interleaved rounds; the median counts (default 5)\n"
    "  --count N      exchanges per round (default 3000 round trips, 256 MB per stream)\n"
    "  --auth A       frames carry key and checksum (key, the default) or a tag (tag); compare:\n"
    "                 both in turns\n"
    "  --loss P       lose P percent of the frames of the link (needs nftables)\n"
    "  --cut          with --loss: cut bursts into frames first and lose single frames\n"
    "  --garbage N    send the receiver N foreign frames per second\n"
    "  --hits         remote write with 100, 50 and 0 % of the registrations cached\n"
    "  --memory       print a table of memory per node for 1,000 peers\n"
    "  --json         one JSON object per line\n"
    "Network devices run in two namespaces joined by veth, which needs root.\n";

std::vector<std::size_t> read_sizes(const char* text) {
  constexpr Bytes kLargest = 4_MiB;
  std::vector<std::size_t> sizes;
  for (const auto word : split(text, ',')) {
    const auto size = parse_bytes(word);
    if (!size || size->value() == 0 || *size > kLargest) {
      throw std::runtime_error("--size: '" + escape_terminal(word, 80) +
                               "' is not a size from 1 to 4M, such as 8, 64K or 1MB");
    }
    sizes.push_back(size->value());
  }
  return sizes;
}

unsigned read_number(const std::string& name, const char* text) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (end == text || *end != '\0' || value == 0 || value > 100'000'000) {
    throw std::runtime_error(name + " takes a number from 1");
  }
  return static_cast<unsigned>(value);
}

double read_percent(const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0) || value > 50) {
    throw std::runtime_error("--loss takes a percentage up to 50");
  }
  return value;
}

void check_device(const BenchOptions& o) {
  const std::string device = o.device.substr(0, o.device.find(':'));
  if (device != "shmem" && device != "udp" && device != "ethernet" && device != "ofi") {
    throw std::runtime_error("unknown device " + o.device);
  }
  if (o.auth != "key" && o.auth != "tag" && o.auth != "compare") {
    throw std::runtime_error("--auth takes key, tag or compare");
  }
  const bool needs_link = o.loss > 0 || o.garbage > 0;
  if (needs_link && device != "udp" && device != "ethernet") {
    throw std::runtime_error("--loss and --garbage need device udp or ethernet");
  }
}

}  // namespace

BenchOptions read_options(int argc, char** argv) {
  BenchOptions o;
  const std::map<std::string, std::function<void(const char*)>> with_value{
      {"--device", [&](const char* text) { o.device = text; }},
      {"--size", [&](const char* text) { o.sizes = read_sizes(text), o.sizes_given = true; }},
      {"--rounds", [&](const char* text) { o.rounds = read_number("--rounds", text); }},
      {"--count", [&](const char* text) { o.count = read_number("--count", text); }},
      {"--garbage", [&](const char* text) { o.garbage = read_number("--garbage", text); }},
      {"--auth", [&](const char* text) { o.auth = text; }},
      {"--loss", [&](const char* text) { o.loss = read_percent(text); }}};
  const std::map<std::string, bool BenchOptions::*> flags{{"--cut", &BenchOptions::cut_bursts},
                                                          {"--hits", &BenchOptions::hits},
                                                          {"--memory", &BenchOptions::memory},
                                                          {"--json", &BenchOptions::json}};
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (const auto flag = flags.find(name); flag != flags.end()) {
      o.*flag->second = true;
      continue;
    }
    const auto option = with_value.find(name);
    if (option == with_value.end()) throw std::runtime_error("unknown option " + name);
    if (++i >= argc) throw std::runtime_error(name + " needs a value");
    option->second(argv[i]);
  }
  check_device(o);
  return o;
}

}  // namespace score::bench
