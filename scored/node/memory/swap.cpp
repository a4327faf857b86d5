#include "scored/node/memory/swap.hpp"

#include "base/os/fd.hpp"
#include "base/os/host_facts.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <sys/vfs.h>

namespace score::node {
namespace {

constexpr std::size_t kMostText = 65'536;
constexpr Bytes kReserve(64U << 20U);  // is left free for others

// Magic numbers of statfs(2): NFS, SMB, CIFS, SMB2, AFS, Ceph, Lustre, 9P, FUSE.
constexpr std::array<std::uint64_t, 9> kNetworks = {0x6969,     0x517b,     0xff534d42,
                                                    0xfe534d42, 0x5346414f, 0x00c36400,
                                                    0x0bd00bd0, 0x01021997, 0x65735546};

bool is_on_network(const std::string& path) {
  struct statfs system {};

  if (statfs(path.c_str(), &system) != 0) return false;
  const auto type = static_cast<std::uint64_t>(system.f_type) & UINT32_MAX;
  return std::ranges::find(kNetworks, type) != kNetworks.end();
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const auto first = line.find_first_not_of(" \t");
    if (first == line.npos) return words;
    line.remove_prefix(first);
    const auto end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

}  // namespace

std::vector<SwapFile> parse_swaps(std::string_view text) {
  std::vector<SwapFile> out;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 1'024;
  for (const std::string_view line : split(text, '\n')) {
    const auto words = words_of(line);
    if (words.size() < 4 || !words[0].starts_with('/')) continue;
    const auto size = parse_number<std::uint64_t>(words[2]);
    const auto used = parse_number<std::uint64_t>(words[3]);
    if (!size || !used || *size > kMost || *used > *size) continue;
    out.push_back({std::string(words[0]), Bytes(*size * 1'024), Bytes(*used * 1'024)});
  }
  return out;
}

JobSwap find_job_swap(const MemoryConfig& config) {
  if (config.share == MemoryShare::Never) return {};
  const auto text = read_file("/proc/swaps", kMostText);
  if (!text) return {Bytes(0), "cannot read /proc/swaps"};
  Bytes total{0};
  for (const SwapFile& file : parse_swaps(*text)) {
    if (is_on_network(file.path)) {
      return {Bytes(0), fmt::format("swap {} is on a network file system", file.path)};
    }
    total += file.size;
  }
  if (total == Bytes(0)) return {Bytes(0), "the host has no swap"};
  const Bytes part(total.value() / 100 * config.swap_percent);
  return {config.swap > Bytes(0) ? std::min(config.swap, total) : part, {}};
}

Bytes offered_swap(const MemoryConfig& config) {
  const JobSwap swap = find_job_swap(config);
  if (!swap.why_none.empty()) log_warning("No job is parked here", kv("reason", swap.why_none));
  return swap.most;
}

Bytes memory_figure(std::string_view name) {
  const auto text = read_file("/proc/meminfo", kMostText);
  const auto figure = text ? parse_meminfo(*text, name) : Result<Bytes>(Bytes(0));
  return figure.value_or(Bytes(0));
}

Bytes free_job_swap(Bytes most, Bytes used) {
  return std::min(most - used, memory_figure("SwapFree") - kReserve);
}

}  // namespace score::node
