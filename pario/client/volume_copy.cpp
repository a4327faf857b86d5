// Copies between files of a volume. Each server that gets bytes reads them where they are, so they
// do not pass through this node.
#include "pario/client/volume.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

namespace score::pario {
namespace {

// One call copies at most so much, so that a program can be interrupted.
constexpr std::uint64_t kMostCopied = std::uint64_t{64} << 20;

struct Step {
  Piece from;
  Piece to;
};

// Cuts both lists of pieces, which have the same sum, at the ends of either.
std::vector<Step> steps_of(const std::vector<Piece>& from, const std::vector<Piece>& to) {
  std::vector<Step> steps;
  std::size_t i = 0;
  std::uint64_t used = 0;  // of from[i]
  for (Piece target : to) {
    while (target.length > 0) {
      const std::uint64_t length =
          std::min({from[i].length - used, target.length, std::uint64_t{kMaxDataBytes}});
      steps.push_back({{from[i].server, from[i].offset + used, length, 0},
                       {target.server, target.offset, length, 0}});
      target.offset += length;
      target.length -= length;
      used += length;
      if (used == from[i].length) {
        ++i;
        used = 0;
      }
    }
  }
  return steps;
}

// Joins steps between the same two servers that follow each other in both data files.
std::vector<Step> joined(const std::vector<Step>& steps) {
  std::vector<Step> result;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> last;
  for (const Step& step : steps) {
    const auto pair = std::pair(step.from.server, step.to.server);
    const auto found = last.find(pair);
    if (found != last.end()) {
      Step& before = result[found->second];
      if (before.from.offset + before.from.length == step.from.offset &&
          before.to.offset + before.to.length == step.to.offset &&
          before.to.length + step.to.length <= kMaxDataBytes) {
        before.from.length += step.from.length;
        before.to.length += step.to.length;
        continue;
      }
    }
    last[pair] = result.size();
    result.push_back(step);
  }
  return result;
}

}  // namespace

ssize_t Volume::copy(const OpenFile& from, std::uint64_t from_offset, OpenFile& to,
                     const Extent& to_extent) {
  FileStatus source;
  if (const int error = status(from.id, source, true)) return -error;
  if (from_offset >= source.size || to_extent.length == 0) return 0;
  const std::uint64_t length = std::min({to_extent.length, source.size - from_offset, kMostCopied});
  const Extent target{to_extent.offset, length};
  if (!is_valid(target)) return -EFBIG;
  std::vector<Piece> from_pieces;
  std::vector<Piece> to_pieces;
  split(striping(from.id), {from_offset, length}, 0, from_pieces);
  split(striping(to.id), target, 0, to_pieces);
  if (const int error = make_wide(to, to_pieces)) return -error;
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::uint32_t> servers;
  for (const Step& step : joined(steps_of(from_pieces, to_pieces))) {
    Call& call = *calls.emplace_back(std::make_unique<Call>());
    servers.push_back(step.to.server);
    call.request = {.op = Op::Copy,
                    .flags = kOpened,
                    .id = to.id,
                    .mode = step.from.server,
                    .number = step.to.offset,
                    .other = from.id,
                    .extents = {{step.from.offset, step.from.length}}};
    links_[step.to.server]->start(call);
  }
  int error = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    links_[servers[i]]->finish(*calls[i]);
    if (error == 0) error = calls[i]->error;
  }
  return error != 0 ? -error : static_cast<ssize_t>(length);
}

}  // namespace score::pario
