#include "pario/core/layout.hpp"

#include "pmlib/wire/siphash.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <span>

namespace score::pario {
namespace {

// Returns the place of `server` in the order of the file's chunks.
std::uint32_t turn_of(const Striping& striping, std::uint32_t server) {
  return (server + striping.servers - striping.first) % striping.servers;
}

}  // namespace

std::uint32_t entry_server(FileId parent, std::string_view name, std::uint32_t servers) {
  pm::SipHash hash({0x7061'7269'6f00'0001, 0x656e'7472'6965'7300});
  hash.add(std::as_bytes(std::span(&parent, 1)));
  return static_cast<std::uint32_t>(hash.finish(std::as_bytes(std::span(name))) % servers);
}

std::string data_path(FileId id) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "%02x/%016llx",
                static_cast<unsigned>(count_of(id) % kDataFolders),
                static_cast<unsigned long long>(id));
  return path.data();
}

bool is_valid(const Striping& striping) {
  return striping.servers >= 1 && striping.servers <= kMaxServers &&
         striping.first < striping.servers && striping.stripe >= kMinStripe &&
         striping.stripe <= kMaxStripe && std::has_single_bit(striping.stripe);
}

void split(const Striping& striping, const Extent& extent, std::uint64_t buffer,
           std::vector<Piece>& pieces) {
  if (striping.servers == 1) {
    pieces.push_back({striping.first, extent.offset, extent.length, buffer});
    return;
  }
  std::uint64_t at = extent.offset;
  const std::uint64_t end = extent.offset + extent.length;
  while (at < end) {
    const std::uint64_t chunk = at / striping.stripe;
    const std::uint64_t inside = at % striping.stripe;
    const std::uint64_t length = std::min(striping.stripe - inside, end - at);
    const auto server = static_cast<std::uint32_t>((striping.first + chunk) % striping.servers);
    pieces.push_back({server, chunk / striping.servers * striping.stripe + inside, length,
                      buffer + (at - extent.offset)});
    at += length;
  }
}

std::uint64_t local_size(const Striping& striping, std::uint32_t server, std::uint64_t size) {
  const std::uint64_t chunks = size / striping.stripe;
  const std::uint64_t turn = turn_of(striping, server);
  const std::uint64_t last_turn = chunks % striping.servers;
  const std::uint64_t whole = chunks / striping.servers + (turn < last_turn ? 1 : 0);
  return whole * striping.stripe + (turn == last_turn ? size % striping.stripe : 0);
}

std::uint64_t file_end(const Striping& striping, std::uint32_t server, std::uint64_t local) {
  if (local == 0) return 0;
  const std::uint64_t last = local - 1;
  const std::uint64_t row = last / striping.stripe;
  const std::uint64_t turn = turn_of(striping, server);
  const std::uint64_t most_chunks = kMaxOffset / striping.stripe;
  if (row > (most_chunks - turn) / striping.servers) return kMaxOffset;
  const std::uint64_t chunk = row * striping.servers + turn;
  const std::uint64_t begin = chunk * striping.stripe;
  return std::min(kMaxOffset, begin + last % striping.stripe + 1);
}

bool is_valid(const View& view) {
  if (view.start > kMaxOffset || view.block > kMaxOffset || view.stride > kMaxOffset) return false;
  return view.block == 0 || view.stride >= view.block;
}

View segmented_view(std::uint64_t stripe, std::uint32_t segment, std::uint32_t segments) {
  return {stripe * segment, stripe, stripe * segments};
}

bool map(const View& view, const Extent& shown, std::size_t most, std::vector<Extent>& extents) {
  if (!is_valid(view) || !is_valid(shown)) return false;
  if (view.block == 0) {
    const Extent extent{view.start + shown.offset, shown.length};
    if (!is_valid(extent) || most < 1) return false;
    extents.push_back(extent);
    return true;
  }
  const std::uint64_t first_row = shown.offset / view.block;
  const std::uint64_t last_row = (shown.offset + shown.length - 1) / view.block;
  if (last_row - first_row >= most) return false;
  // The last block begins within kMaxOffset, and so do all blocks before it.
  if (last_row > (kMaxOffset - view.start) / view.stride) return false;
  if (!is_valid(Extent{view.start + last_row * view.stride, view.block})) return false;
  std::uint64_t at = shown.offset;
  const std::uint64_t end = shown.offset + shown.length;
  while (at < end) {
    const std::uint64_t row = at / view.block;
    const std::uint64_t inside = at % view.block;
    const std::uint64_t length = std::min(view.block - inside, end - at);
    extents.push_back({view.start + row * view.stride + inside, length});
    at += length;
  }
  return true;
}

}  // namespace score::pario
