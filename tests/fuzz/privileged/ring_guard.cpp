// This fuzz target sends frames of jobs through the program that scored-ring-guard runs on each
// frame that leaves the node. The input is options, the bounds of the ring, and the frame. The
// verdict must be that of a plain comparison.
#include "base/assert.hpp"
#include "pmlib/wire/frame.hpp"
#include "scored/privileged/ring_guard/bounds.hpp"
#include "scored/privileged/ring_guard/programs.hpp"
#include "tests/support/privileged/ebpf_machine.hpp"

#include <cstddef>
#include <cstring>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <span>

namespace {

using score::pm::EbpfMachine;
using score::pm::FrameHeader;
using score::ring_guard::Bounds;

// Options of an input.
constexpr unsigned kIsMarked = 1;
constexpr unsigned kHasSocket = 2;
constexpr unsigned kHasBounds = 4;
constexpr unsigned kFits = 8;  // the bounds are made those of the frame, except ...
constexpr unsigned kHasKey = 16;

using Frame = std::span<const std::uint8_t>;

constexpr std::size_t kExamined = ETH_HLEN + offsetof(FrameHeader, destination);

template <class Value>
Value at(Frame frame, std::size_t place) {
  Value value{};
  std::memcpy(&value, frame.data() + place, sizeof value);
  return value;
}

Bounds bounds_of(Frame frame) {
  constexpr std::size_t kHeader = ETH_HLEN;
  Bounds bounds;
  std::memcpy(bounds.source, frame.data() + ETH_ALEN, ETH_ALEN);
  bounds.ether_type = at<std::uint16_t>(frame, 2 * ETH_ALEN);
  bounds.magic_version = at<std::uint16_t>(frame, kHeader + offsetof(FrameHeader, magic));
  bounds.channel = at<std::uint16_t>(frame, kHeader + offsetof(FrameHeader, channel));
  bounds.generation = at<std::uint32_t>(frame, kHeader + offsetof(FrameHeader, generation));
  bounds.key = at<std::uint64_t>(frame, kHeader + offsetof(FrameHeader, key));
  bounds.rank = at<std::uint32_t>(frame, kHeader + offsetof(FrameHeader, source));
  return bounds;
}

bool is_inside(Frame frame, const Bounds& bounds) {
  if (frame.size() < kExamined) return false;
  const Bounds own = bounds_of(frame);
  return std::memcmp(own.source, bounds.source, sizeof own.source) == 0 &&
         own.ether_type == bounds.ether_type && own.magic_version == bounds.magic_version &&
         own.channel == bounds.channel && own.generation == bounds.generation &&
         own.rank == bounds.rank && (bounds.key == 0 || own.key == bounds.key);
}

std::optional<std::uint64_t> run(unsigned options, const Bounds& bounds, Frame frame) {
  static const auto program = score::ring_guard::drop_foreign(3);
  bpf_sock socket{};
  __sk_buff buffer{};
  buffer.mark = (options & kIsMarked) != 0 ? score::ring_guard::kMark : 0;
  if ((options & kHasSocket) != 0) buffer.sk = &socket;
  EbpfMachine machine;
  machine.add_helper(BPF_FUNC_sk_fullsock, [](const auto& registers) { return registers[1]; });
  machine.add_helper(BPF_FUNC_sk_storage_get, [&](const auto& registers) {
    SCORE_ASSERT(registers[1] == 3 && registers[2] == EbpfMachine::address(&socket));
    return (options & kHasBounds) != 0 ? EbpfMachine::address(&bounds) : 0;
  });
  machine.add_helper(BPF_FUNC_skb_load_bytes, [&](const auto& registers) -> std::uint64_t {
    SCORE_ASSERT(registers[1] == EbpfMachine::address(&buffer));
    if (registers[2] + registers[4] > frame.size()) return UINT64_MAX;
    std::memcpy(EbpfMachine::pointer<void>(registers[3]), frame.data() + registers[2],
                registers[4]);
    return 0;
  });
  return machine.run(program, &buffer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bounds bounds;
  if (size < 2 + sizeof bounds) return 0;
  const unsigned options = data[0];
  const Frame frame(data + 2 + sizeof bounds, size - 2 - sizeof bounds);
  std::memcpy(&bounds, data + 2, sizeof bounds);
  if ((options & kFits) != 0 && frame.size() >= kExamined) {
    bounds = bounds_of(frame);
    // ... for one bit, if the second byte names one.
    const std::size_t bit = data[1];
    auto* bytes = reinterpret_cast<std::uint8_t*>(&bounds);
    if (bit < 8 * sizeof bounds) bytes[bit / 8] ^= 1U << (bit % 8);
  }
  if ((options & kHasKey) == 0) bounds.key = 0;
  const bool is_foreign =
      (options & kIsMarked) != 0 &&
      ((options & kHasSocket) == 0 || (options & kHasBounds) == 0 || !is_inside(frame, bounds));
  const auto verdict = run(options, bounds, frame);
  SCORE_ASSERT(verdict.has_value(), "unknown instruction, or no end");
  SCORE_ASSERT(static_cast<std::int32_t>(*verdict) == (is_foreign ? TC_ACT_SHOT : TC_ACT_UNSPEC));
  return 0;
}
