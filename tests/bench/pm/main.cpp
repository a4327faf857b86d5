// scbench-pm: measures PM beside its raw baselines, in one run. See --help.
#include "pmlib/segment.hpp"
#include "tests/bench/pm/baselines.hpp"
#include "tests/bench/pm/harness.hpp"
#include "tests/bench/pm/pm_ends.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace score::bench {
namespace {

constexpr const char* kUsage =
    "usage: scbench pm [OPTION]...\n"
    "  --device D     shmem, udp, ethernet, or ofi:PROVIDER (default shmem)\n"
    "  --size N[,N]   message sizes in bytes (default 8,1048576)\n"
    "  --rounds N     interleaved rounds; the median counts (default 5)\n"
    "  --count N      exchanges of a round (default 3000 round trips, 256 MB of a stream)\n"
    "  --loss P       lose P percent of the frames (udp; needs nftables)\n"
    "  --hits         remote write with registrations found pinned 100, 50 and 0 %\n"
    "  --memory       table of memory a node for 1,000 peers\n"
    "  --json         one JSON object a line\n"
    "Network devices run in two namespaces joined by veth, which needs root.\n";

struct Options {
  std::string device = "shmem";
  std::vector<std::size_t> sizes{8, 1 << 20};
  unsigned rounds = 5;
  unsigned count = 0;
  double loss = 0;
  bool hits = false;
  bool memory = false;
  bool json = false;
};

struct Row {
  std::size_t size = 0;
  Spread pm_us, raw_us, tcp_us;  // one way
  Spread pm_mb, raw_mb, tcp_mb;  // 10^6 bytes a second
  std::string method;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        is_shmem_(options.device == "shmem"),
        ends_(!is_shmem_),
        directory_(std::filesystem::temp_directory_path() /
                   ("pm-bench-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(directory_);
    std::filesystem::permissions(directory_, std::filesystem::perms::owner_all);
    write_address_file();
  }

  ~Bench() { std::filesystem::remove_all(directory_); }

  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Row measure(std::size_t size) {
    Row row;
    row.size = size;
    row.method = "two processes on two processors, " + std::to_string(options_.rounds) +
                 " interleaved rounds, median [low high]";
    std::vector<double> us[3], mb[3];
    for (unsigned i = 0; i < options_.rounds; ++i) {
      us[0].push_back(
          latency(size, [&](int side, Shared& s, Amount a) { pm_ping_pong(side, s, a, file()); }));
      // A bare burst beyond the socket's buffer loses datagrams: nothing to compare with.
      if (is_shmem_ || size <= 65536) {
        us[1].push_back(
            latency(size, [&](int side, Shared& s, Amount a) { raw_ping(side, s, a); }));
      }
      us[2].push_back(latency(size, [&](int side, Shared& s, Amount a) {
        tcp_ping_pong(side, s, a, ends_.address(1));
      }));
      mb[0].push_back(pm_bandwidth(size));
      mb[1].push_back(
          bandwidth(size, [&](int side, Shared& s, Amount a) { raw_flow(side, s, a); }));
      mb[2].push_back(bandwidth(
          size, [&](int side, Shared& s, Amount a) { tcp_stream(side, s, a, ends_.address(1)); }));
    }
    row.pm_us = spread_of(us[0]);
    row.raw_us = spread_of(us[1]);
    row.tcp_us = spread_of(us[2]);
    row.pm_mb = spread_of(mb[0]);
    row.raw_mb = spread_of(mb[1]);
    row.tcp_mb = spread_of(mb[2]);
    return row;
  }

  // Bandwidth of 1 MB messages with and without loss.
  void measure_loss(double percent) {
    std::vector<double> clean, lossy;
    for (unsigned i = 0; i < options_.rounds; ++i) {
      ends_.lose(0);
      clean.push_back(pm_bandwidth(1 << 20));
      ends_.lose(percent);
      lossy.push_back(pm_bandwidth(1 << 20));
    }
    ends_.lose(0);
    const Spread a = spread_of(clean);
    const Spread b = spread_of(lossy);
    std::printf(
        "{\"device\":\"%s\",\"size\":1048576,\"loss_percent\":%g,\"lossless_mb_s\":%.0f,"
        "\"bandwidth_mb_s\":%.0f,\"ratio\":%.3f,\"low\":%.0f,\"high\":%.0f}\n",
        options_.device.c_str(), percent, a.median, b.median, b.median / a.median, b.low, b.high);
  }

  void measure_hits() {
    for (const std::size_t size : {std::size_t{8192}, std::size_t{1} << 20}) {
      for (const int percent : {100, 50, 0}) {
        std::vector<double> rates;
        for (unsigned i = 0; i < options_.rounds; ++i) {
          PmStream stream{amount_for(size), Transfer::Write, 1, percent};
          rates.push_back(rate([&](int side, Shared& s) { pm_stream(side, s, stream, file()); }));
        }
        const Spread r = spread_of(rates);
        std::printf(
            "{\"device\":\"%s\",\"size\":%zu,\"hit_percent\":%d,\"write_mb_s\":%.0f,"
            "\"low\":%.0f,\"high\":%.0f}\n",
            options_.device.c_str(), size, percent, r.median, r.low, r.high);
      }
      std::vector<double> messages;
      const std::size_t each = std::min<std::size_t>(size, is_shmem_ ? 8192 : 1424);
      for (unsigned i = 0; i < options_.rounds; ++i) {
        PmStream stream{amount_for(each), Transfer::Message, 1, -1};
        messages.push_back(rate([&](int side, Shared& s) { pm_stream(side, s, stream, file()); }));
      }
      const Spread m = spread_of(messages);
      std::printf(
          "{\"device\":\"%s\",\"size\":%zu,\"pieces\":%zu,\"message_with_copies_mb_s\":%.0f}\n",
          options_.device.c_str(), size, each, m.median);
    }
  }

 private:
  std::string file() const { return directory_ / "addresses"; }

  void write_address_file() {
    std::ofstream out(file());
    out << "key 5ca1ab1e\n";
    const std::string device = options_.device.substr(0, options_.device.find(':'));
    if (is_shmem_) {
      out << "device none\nshmem " << (directory_ / "job").string()
          << "\nrank 0 node -\nrank 1 node -\n";
    } else if (device == "ethernet") {
      out << "device ethernet\ninterface " << TwoEnds::kInterface << "\n";
      for (int i : {0, 1}) out << "rank " << i << " node" << i << " " << ends_.mac(i) << "\n";
    } else {
      out << "device " << device << "\n";
      if (device == "ofi") out << "provider " << options_.device.substr(4) << "\n";
      for (int i : {0, 1}) {
        out << "rank " << i << " node" << i << " " << ends_.address(i) << ":4000\n";
      }
    }
  }

  bool is_ethernet() const { return options_.device == "ethernet"; }

  void raw_ping(int side, Shared& s, Amount a) const {
    if (is_shmem_) return flag_ping_pong(side, s, a);
    if (is_ethernet() && a.size <= 1400) {
      return packet_ring_ping_pong(side, s, a, ends_.mac(1 - side));
    }
    udp_ping_pong(side, s, a, ends_.address(side), ends_.address(1 - side));
  }

  void raw_flow(int side, Shared& s, Amount a) const {
    if (is_shmem_) return cross_memory_stream(side, s, a);
    if (is_ethernet() && a.size <= 1400) {
      return packet_ring_stream(side, s, a, ends_.mac(1 - side));
    }
    udp_stream(side, s, a, ends_.address(side), ends_.address(1 - side));
  }

  Amount amount_for(std::size_t size) const {
    const std::size_t bytes = std::size_t{256} << 20;
    const std::size_t count = std::clamp<std::size_t>(bytes / size, 32, 100'000);
    return {size, options_.count != 0 ? options_.count : static_cast<unsigned>(count)};
  }

  template <class Exchange>
  double latency(std::size_t size, Exchange exchange) {
    const unsigned count = options_.count != 0 ? options_.count : size <= 65536 ? 3000 : 200;
    const Amount amount{size, count};
    const Shared& s = ends_.run([&](int side, Shared& shared) { exchange(side, shared, amount); });
    return s.seconds / count / 2 * 1e6;
  }

  template <class Run>
  double rate(Run run) {
    const Shared& s = ends_.run(run);
    return static_cast<double>(s.amount) / s.seconds / 1e6;
  }

  template <class Stream>
  double bandwidth(std::size_t size, Stream stream) {
    const Amount amount = amount_for(size);
    return rate([&](int side, Shared& s) { stream(side, s, amount); });
  }

  double pm_bandwidth(std::size_t size) {
    PmStream stream{amount_for(size), Transfer::Message, 2, -1};
    const std::size_t longest = is_shmem_ ? 8192 : 1424;
    if (size > longest) stream.by = is_shmem_ ? Transfer::Write : Transfer::Large;
    return rate([&](int side, Shared& s) { pm_stream(side, s, stream, file()); });
  }

  Options options_;
  bool is_shmem_;
  TwoEnds ends_;
  std::filesystem::path directory_;
};

// 0 stands for "not measured".
double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

void print(const Options& o, const Row& r) {
  if (!o.json) {
    std::printf(
        "%-10s %8zu B  one way %9.3f us (raw %9.3f, tcp %9.3f)  %8.1f MB/s (raw %8.1f, tcp "
        "%8.1f)\n",
        o.device.c_str(), r.size, r.pm_us.median, r.raw_us.median, r.tcp_us.median, r.pm_mb.median,
        r.raw_mb.median, r.tcp_mb.median);
    return;
  }
  std::printf(
      "{\"device\":\"%s\",\"size\":%zu,\"one_way_us\":%.4f,\"bandwidth_mb_s\":%.1f,"
      "\"vs_raw\":%.3f,\"vs_tcp\":%.3f,\"bandwidth_vs_raw\":%.3f,\"bandwidth_vs_tcp\":%.3f,"
      "\"raw_one_way_us\":%.4f,\"tcp_one_way_us\":%.4f,\"raw_mb_s\":%.1f,\"tcp_mb_s\":%.1f,"
      "\"spread_us\":[%.4f,%.4f],\"spread_mb_s\":[%.1f,%.1f],\"method\":\"%s\"}\n",
      o.device.c_str(), r.size, r.pm_us.median, r.pm_mb.median,
      ratio(r.pm_us.median, r.raw_us.median), ratio(r.pm_us.median, r.tcp_us.median),
      ratio(r.pm_mb.median, r.raw_mb.median), ratio(r.pm_mb.median, r.tcp_mb.median),
      r.raw_us.median, r.tcp_us.median, r.raw_mb.median, r.tcp_mb.median, r.pm_us.low, r.pm_us.high,
      r.pm_mb.low, r.pm_mb.high, r.method.c_str());
}

void print_memory(bool json) {
  const auto small = pm::Layout::of({.size = 1});
  const auto large = pm::Layout::of({.size = 1001});
  const double per_peer = static_cast<double>(large->descriptors - small->descriptors) / 1000;
  const auto kb = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1024; };
  const std::uint64_t control = large->send_slots - large->sets;
  const std::uint64_t send = large->receive_slots - large->send_slots;
  const std::uint64_t receive = large->inbox - large->receive_slots;
  const std::uint64_t shared = large->total - large->inbox;
  const std::uint64_t peers = large->sets - large->peers;
  if (json) {
    std::printf(
        "{\"peers\":1000,\"send_kb\":%.0f,\"receive_kb\":%.0f,\"shmem_kb\":%.0f,"
        "\"control_kb\":%.0f,\"peers_kb\":%.0f,\"total_kb\":%.0f,\"bytes_a_peer\":%.1f}\n",
        kb(send), kb(receive), kb(shared), kb(control), kb(peers), kb(large->total), per_peer);
    return;
  }
  std::printf(
      "memory of a node for 1,000 peers (KB)      PM      GigaE PM   TCP\n"
      "  send buffers                        %8.0f      120        128,000\n"
      "  receive buffers                     %8.0f      128        128,000\n"
      "  shared-memory inbox and buffers     %8.0f        -              -\n"
      "  control                             %8.0f       23            274\n"
      "  table of peers (%.1f B a peer)       %8.0f\n"
      "  in all                              %8.0f      271        256,274\n",
      kb(send), kb(receive), kb(shared), kb(control), per_peer, kb(peers), kb(large->total));
}

std::vector<std::size_t> read_sizes(const char* text) {
  std::vector<std::size_t> sizes;
  for (char* end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end) {
    const unsigned long long size = std::strtoull(text, &end, 10);
    if (end == text || size == 0 || size > (4u << 20)) throw std::runtime_error("wrong --size");
    sizes.push_back(size);
  }
  return sizes;
}

Options read_options(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    auto value = [&] {
      if (++i >= argc) throw std::runtime_error(name + " needs a value");
      return argv[i];
    };
    if (name == "pm") continue;
    if (name == "--device") {
      o.device = value();
    } else if (name == "--size") {
      o.sizes = read_sizes(value());
    } else if (name == "--rounds") {
      o.rounds = std::max(1u, static_cast<unsigned>(std::strtoul(value(), nullptr, 10)));
    } else if (name == "--count") {
      o.count = static_cast<unsigned>(std::strtoul(value(), nullptr, 10));
    } else if (name == "--loss") {
      o.loss = std::strtod(value(), nullptr);
    } else if (name == "--hits") {
      o.hits = true;
    } else if (name == "--memory") {
      o.memory = true;
    } else if (name == "--json") {
      o.json = true;
    } else if (name == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else {
      throw std::runtime_error("unknown option " + name);
    }
  }
  const std::string device = o.device.substr(0, o.device.find(':'));
  if (device != "shmem" && device != "udp" && device != "ethernet" && device != "ofi") {
    throw std::runtime_error("unknown device " + o.device);
  }
  return o;
}

}  // namespace
}  // namespace score::bench

int main(int argc, char** argv) {
  using namespace score::bench;
  try {
    const Options options = read_options(argc, argv);
    if (options.memory) {
      print_memory(options.json);
      return 0;
    }
    Bench bench(options);
    if (options.loss > 0) {
      bench.measure_loss(options.loss);
    } else if (options.hits) {
      bench.measure_hits();
    } else {
      for (const std::size_t size : options.sizes) print(options, bench.measure(size));
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "scbench pm: %s\n", e.what());
    return 1;
  }
  return 0;
}
