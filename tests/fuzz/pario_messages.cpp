// This fuzz target parses data from clients, servers and description files of striped volumes. Any
// bytes must give values within the limits or a refusal. An accepted request must encode to the
// same bytes; so must records of the log of transactions. A state machine that replays the records
// can be compacted and replayed to the same log.

#include "pario/core/message.hpp"
#include "pario/core/transactions.hpp"
#include "pario/core/volume_file.hpp"

#include <cstdint>
#include <cstdlib>

namespace {

using namespace score::pario;  // NOLINT(google-build-using-namespace)

void require(bool holds) {
  if (!holds) std::abort();
}

void try_request(std::string_view bytes) {
  Request request;
  if (!parse_request(bytes, request)) return;
  std::uint64_t total = 0;
  for (const Extent& extent : request.extents) {
    require(is_valid(extent));
    total += extent.length;
  }
  if ((request.flags & kRemote) != 0) {
    require(request.op == Op::Read || request.op == Op::Write);
    require(request.places.size() == request.extents.size());
    for (std::size_t i = 0; i < request.places.size(); ++i) {
      require(request.places[i] <= request.remote.length &&
              request.extents[i].length <= request.remote.length - request.places[i] &&
              request.remote.offset + request.remote.length >= request.remote.offset);
    }
  }
  require(total <= kMaxDataBytes && request.extents.size() <= kMaxExtents);
  require(request.name.empty() || is_valid_name(request.name));
  std::string again;
  append_request(request, again);
  require(again == bytes);
}

void try_replies(std::string_view bytes) {
  if (bytes.size() >= kHeaderBytes) {
    Reply reply;
    if (parse_reply(std::span<const char, kHeaderBytes>(bytes.data(), kHeaderBytes), reply)) {
      require(reply.data_bytes <= kMaxDataBytes && reply.body_bytes <= kMaxReplyBodyBytes);
    }
  }
  Attributes attributes;
  if (parse_body(bytes, attributes)) require(attributes.size <= kMaxOffset);
  ChannelOffer offer;
  if (parse_body(bytes, offer)) require(bytes.size() == sizeof(ChannelOffer));
  DataPlace place;
  static_cast<void>(parse_body(bytes, place));
  Statistics statistics;
  static_cast<void>(parse_body(bytes, statistics));
  std::vector<Entry> entries;
  if (parse_entries(bytes, entries)) {
    for (const Entry& entry : entries) require(is_valid_name(entry.name));
  }
}

void try_volume(std::string_view text) {
  VolumeDescription volume;
  std::string message;
  if (parse_volume(text, volume, message)) {
    require(!volume.servers.empty() && is_valid(Striping{1, 0, volume.stripe}));
  } else {
    require(!message.empty());
  }
}

std::string replay(std::string_view log) {
  Transactions machine(1, 7);
  while (!log.empty()) {
    LogRecord record;
    const std::size_t length = decode(log, record);
    if (length == 0) break;
    require(record.part.id != 0 && record.part.servers.size() <= kMaxServers);
    require(encode(record) == log.substr(0, length));
    machine.replay(std::move(record), 5);
    log.remove_prefix(length);
  }
  machine.recovered(0);
  for (const Transactions::Action& action : machine.take_actions()) {
    if (action.kind == Transactions::Action::Kind::Apply) machine.applied(action.id, 5);
  }
  machine.tick(100'000);
  static_cast<void>(machine.take_actions());
  return machine.compacted();
}

void try_log(std::string_view log) {
  const std::string once = replay(log);
  require(replay(once) == once);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_request(bytes);
  try_replies(bytes);
  try_volume(bytes);
  try_log(bytes);
  return 0;
}
