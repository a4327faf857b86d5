#include "bench/pm/bench.hpp"

#include "bench/pm/garbage.hpp"
#include "bench/pm/report.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <unistd.h>

namespace score::bench {

PmBench::PmBench(const BenchOptions& options)
    : options_(options),
      ends_(!options.is_shmem()),
      directory_(std::filesystem::temp_directory_path() /
                 ("pm-bench-" + std::to_string(getpid()))) {
  std::filesystem::create_directory(directory_);
  std::filesystem::permissions(directory_, std::filesystem::perms::owner_all);
  for (const char* auth : {"key", "tag"}) write_address_file(auth);
}

PmBench::~PmBench() {
  std::filesystem::remove_all(directory_);
}

void PmBench::write_address_file(const std::string& auth) {
  std::ofstream out(file_with(auth));
  out << "key " << std::hex << kBenchKey << std::dec << "\ngeneration " << kBenchGeneration
      << "\nauth " << auth << "\n";
  const std::string device = options_.device.substr(0, options_.device.find(':'));
  if (options_.is_shmem()) {
    out << "device none\nshmem " << (directory_ / "job").string()
        << "\nrank 0 node -\nrank 1 node -\n";
  } else if (options_.is_ethernet()) {
    out << "device ethernet\ninterface " << TwoEnds::kInterface << "\n";
    for (int i : {0, 1}) out << "rank " << i << " node" << i << " " << ends_.mac(i) << "\n";
  } else {
    out << "device " << device << "\n";
    if (device == "ofi") out << "provider " << options_.device.substr(4) << "\n";
    for (int i : {0, 1}) {
      out << "rank " << i << " node" << i << " " << ends_.address(i) << ":" << kBenchPort << "\n";
    }
  }
}

// --- one exchange ------------------------------------------------------------------------------

void PmBench::raw_ping(int side, Shared& s, Amount a) const {
  if (options_.is_shmem()) return flag_ping_pong(side, s, a);
  if (options_.is_ethernet()) return packet_ring_ping_pong(side, s, a, ends_.mac(1 - side));
  udp_ping_pong(side, s, a, ends_.address(side), ends_.address(1 - side));
}

void PmBench::raw_flow(int side, Shared& s, Amount a) const {
  if (options_.is_shmem()) return cross_memory_stream(side, s, a);
  if (options_.is_ethernet()) return packet_ring_stream(side, s, a, ends_.mac(1 - side));
  udp_stream(side, s, a, ends_.address(side), ends_.address(1 - side));
}

Amount PmBench::amount_for(std::size_t size) const {
  const std::size_t bytes = std::size_t{256} << 20;
  const std::size_t count = std::clamp<std::size_t>(bytes / size, 32, 100'000);
  return {size, options_.count != 0 ? options_.count : static_cast<unsigned>(count)};
}

std::size_t PmBench::longest_message() const {
  return options_.is_shmem() ? 8192 : 1424;
}

double PmBench::latency(std::size_t size, const Exchange& exchange) {
  const unsigned count = options_.count != 0 ? options_.count : size <= 65536 ? 3000 : 200;
  const Amount amount{size, count};
  const Shared& s = ends_.run([&](int side, Shared& shared) { exchange(side, shared, amount); });
  return s.seconds / count / 2 * 1e6;
}

double PmBench::rate(const Side& run) {
  const Shared& s = ends_.run(run);
  return static_cast<double>(s.amount) / s.seconds / 1e6;
}

double PmBench::bandwidth(std::size_t size, const Exchange& stream) {
  const Amount amount = amount_for(size);
  return rate([&](int side, Shared& s) { stream(side, s, amount); });
}

double PmBench::pm_bandwidth(std::size_t size, const std::string& file) {
  PmStream stream{amount_for(size), TransferKind::Message, 2, -1};
  if (size > longest_message()) {
    stream.by = options_.is_shmem() ? TransferKind::Write : TransferKind::Large;
  }
  return rate([&](int side, Shared& s) { pm_stream(side, s, stream, file); });
}

// --- measurements ------------------------------------------------------------------------------

void PmBench::measure(std::size_t size) {
  const Exchange pm = [&](int side, Shared& s, Amount a) { pm_ping_pong(side, s, a, file()); };
  const Exchange raw = [&](int side, Shared& s, Amount a) { raw_ping(side, s, a); };
  const Exchange tcp = [&](int side, Shared& s, Amount a) {
    tcp_ping_pong(side, s, a, ends_.address(1));
  };
  const Exchange raw_bulk = [&](int side, Shared& s, Amount a) { raw_flow(side, s, a); };
  const Exchange tcp_bulk = [&](int side, Shared& s, Amount a) {
    tcp_stream(side, s, a, ends_.address(1));
  };
  std::array<std::vector<double>, 3> us, mb;
  for (unsigned i = 0; i < options_.rounds; ++i) {
    us[0].push_back(latency(size, pm));
    us[1].push_back(latency(size, raw));
    us[2].push_back(latency(size, tcp));
    mb[0].push_back(pm_bandwidth(size));
    mb[1].push_back(bandwidth(size, raw_bulk));
    mb[2].push_back(bandwidth(size, tcp_bulk));
  }
  print_row(options_, {size, spread_of(us[0]), spread_of(us[1]), spread_of(us[2]), spread_of(mb[0]),
                       spread_of(mb[1]), spread_of(mb[2])});
}

void PmBench::measure_loss(std::size_t size) {
  std::vector<double> bare, filtered, lossy, resent, time_outs;
  if (options_.cut_bursts) ends_.cut_bursts();
  for (unsigned i = 0; i < options_.rounds; ++i) {
    ends_.lose(0);
    bare.push_back(pm_bandwidth(size));
    ends_.lose(options_.loss, true);
    filtered.push_back(pm_bandwidth(size));
    ends_.lose(options_.loss);
    lossy.push_back(pm_bandwidth(size));
    const auto& sender = ends_.shared().count[0];
    resent.push_back(ratio(100 * static_cast<double>(sender[1]), static_cast<double>(sender[0])));
    time_outs.push_back(static_cast<double>(sender[2]));
  }
  ends_.lose(0);
  const Spread with = spread_of(lossy), without = spread_of(filtered), free = spread_of(bare);
  ReportLine(options_, size)
      .add("loss_percent", options_.loss, 3)
      .add("lost", options_.cut_bursts ? "frames" : "bursts")
      .add("bandwidth_mb_s", with, 1)
      .add("lossless_mb_s", without, 1)
      .add("unfiltered_mb_s", free, 1)
      .add("resent_percent", spread_of(resent), 2)
      .add("time_outs", spread_of(time_outs), 0)
      .add("bandwidth_vs_lossless", ratios_of(lossy, filtered), 3)
      .add("bandwidth_vs_unfiltered", ratios_of(lossy, bare), 3)
      .print();
}

// Measures three streams, each alone and with garbage for no receiver, to find the cost of the
// generator for PM, raw frames and TCP. PM is also measured with the garbage sent to its receiver.
void PmBench::measure_garbage(std::size_t size) {
  std::array<std::vector<double>, 3> clean, elsewhere;
  std::vector<double> hit, dropped, sent;
  // The stream lasts a second or so, because the garbage comes in bursts of a millisecond.
  const std::size_t count = std::clamp<std::size_t>((std::size_t{2} << 30) / size, 64, 1'000'000);
  PmStream stream{{size, options_.count != 0 ? options_.count : static_cast<unsigned>(count)}};
  if (size > longest_message()) stream.by = TransferKind::Large;
  const std::array<Side, 3> streams{
      [&](int side, Shared& s) { pm_stream(side, s, stream, file()); },
      [&](int side, Shared& s) { raw_flow(side, s, stream.amount); },
      [&](int side, Shared& s) { tcp_stream(side, s, stream.amount, ends_.address(1)); }};
  GarbageOptions garbage{.is_ethernet = options_.is_ethernet(),
                         .port = kBenchPort,
                         .key = kBenchKey,
                         .generation = kBenchGeneration,
                         .rate = options_.garbage};
  for (unsigned i = 0; i < options_.rounds; ++i) {
    for (std::size_t k = 0; k < streams.size(); ++k) clean[k].push_back(rate(streams[k]));
    garbage.without_reader = true;
    for (std::size_t k = 0; k < streams.size(); ++k) {
      const Garbage source(ends_, garbage);
      elsewhere[k].push_back(rate(streams[k]));
    }
    garbage.without_reader = false;
    const Garbage source(ends_, garbage);
    hit.push_back(rate(streams[0]));
    sent.push_back(source.rate());
    dropped.push_back(static_cast<double>(ends_.shared().dropped));
  }
  const Spread with = spread_of(hit), pm_clean = spread_of(clean[0]);
  const Spread pm_elsewhere = spread_of(elsewhere[0]);
  const auto left = [&](std::size_t k) { return ratios_of(elsewhere[k], clean[k]); };
  ReportLine(options_, size)
      .add("garbage_frames_s", spread_of(sent), 0)
      .add("dropped", spread_of(dropped), 0)
      .add("bandwidth_mb_s", with, 1)
      .add("clean_mb_s", pm_clean, 1)
      .add("elsewhere_mb_s", pm_elsewhere, 1)
      .add("goodput_vs_clean", ratios_of(hit, clean[0]), 3)
      .add("goodput_vs_elsewhere", ratios_of(hit, elsewhere[0]), 3)
      .add("pm_elsewhere_vs_clean", left(0), 3)
      .add("raw_elsewhere_vs_clean", left(1), 3)
      .add("tcp_elsewhere_vs_clean", left(2), 3)
      .print();
}

void PmBench::measure_auth(std::size_t size) {
  std::array<std::vector<double>, 2> us, mb;
  for (unsigned i = 0; i < options_.rounds; ++i) {
    for (std::size_t k = 0; k < 2; ++k) {
      const std::string with = file_with(k == 0 ? "key" : "tag");
      us[k].push_back(
          latency(size, [&](int side, Shared& s, Amount a) { pm_ping_pong(side, s, a, with); }));
      mb[k].push_back(pm_bandwidth(size, with));
    }
  }
  ReportLine(options_, size)
      .add("key_one_way_us", spread_of(us[0]), 4)
      .add("tag_one_way_us", spread_of(us[1]), 4)
      .add("key_mb_s", spread_of(mb[0]), 1)
      .add("tag_mb_s", spread_of(mb[1]), 1)
      .add("one_way_tag_vs_key", ratios_of(us[1], us[0]), 3)
      .add("bandwidth_tag_vs_key", ratios_of(mb[1], mb[0]), 3)
      .print();
}

// Each write registers its memory again. As with messages, some 64 KB are in flight.
unsigned writes_under_way(std::size_t size) {
  return static_cast<unsigned>(std::clamp<std::size_t>(65536 / size, 1, 8));
}

// The first hundredth of a second is slower, and most of a short stream. So it is not timed, and
// fast variants run longer.
constexpr unsigned kLonger = 4;

double PmBench::write_bandwidth(std::size_t size, int hit_percent) {
  PmStream stream{amount_for(size), TransferKind::Write, writes_under_way(size), hit_percent};
  stream.warm_up = stream.amount.count;
  if (hit_percent == 100) stream.amount.count *= kLonger;
  return rate([&](int side, Shared& s) { pm_stream(side, s, stream, file()); });
}

// Sends the same bytes, cut into messages.
double PmBench::message_bandwidth(std::size_t size, bool copies) {
  const Amount piece = amount_for(std::min(size, longest_message()));
  PmStream stream{piece, TransferKind::Message, 1, -1, size, piece.count, copies};
  stream.amount.count *= kLonger;
  return rate([&](int side, Shared& s) { pm_stream(side, s, stream, file()); });
}

void PmBench::measure_hits(std::size_t size) {
  constexpr std::array<int, 3> kPercent{100, 50, 0};
  std::array<std::vector<double>, 3> writes;
  std::array<std::vector<double>, 2> messages, others;  // bare and copied; raw and TCP
  for (unsigned i = 0; i < options_.rounds; ++i) {
    for (std::size_t k = 0; k < kPercent.size(); ++k) {
      writes[k].push_back(write_bandwidth(size, kPercent[k]));
    }
    messages[0].push_back(message_bandwidth(size, false));
    messages[1].push_back(message_bandwidth(size, true));
    others[0].push_back(
        bandwidth(size, [&](int side, Shared& s, Amount a) { raw_flow(side, s, a); }));
    others[1].push_back(bandwidth(
        size, [&](int side, Shared& s, Amount a) { tcp_stream(side, s, a, ends_.address(1)); }));
  }
  ReportLine(options_, size)
      .add("write_hit_100_mb_s", spread_of(writes[0]), 4)
      .add("write_hit_50_mb_s", spread_of(writes[1]), 4)
      .add("write_hit_0_mb_s", spread_of(writes[2]), 4)
      .add("message_mb_s", spread_of(messages[0]), 4)
      .add("message_with_copies_mb_s", spread_of(messages[1]), 4)
      .add("message_bytes", static_cast<double>(std::min(size, longest_message())), 0)
      .add("write_vs_message", ratios_of(writes[0], messages[1]), 3)
      .add("raw_mb_s", spread_of(others[0]), 4)
      .add("tcp_mb_s", spread_of(others[1]), 4)
      .print();
}

}  // namespace score::bench
