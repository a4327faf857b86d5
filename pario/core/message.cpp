// Two small cursors write and read the bytes. One table lists the fields of each body.
#include "pario/core/message.hpp"

#include "pario/core/bytes.hpp"
#include "pmlib/wire/siphash.hpp"

#include <algorithm>
#include <cstring>

namespace score::pario {
namespace {

// A body has its fields in this order.
enum Field : unsigned {
  kMode = 1,
  kNumber = 2,
  kOther = 4,
  kName = 8,
  kName2 = 16,
  kExtents = 32,
  kStart = 64,     // a name that may be empty
  kServers = 128,  // 1 to kMaxServers, ascending
};

constexpr unsigned fields_of(Op op) {
  switch (op) {
    case Op::Lookup:
      return kName;
    case Op::Create:
      return kMode | kName;
    case Op::Unlink:
      return kNumber | kName;
    case Op::Insert:
      return kMode | kNumber | kName;
    case Op::Rename:
      return kNumber | kName | kName2;
    case Op::Move:
      return kMode | kNumber | kOther | kName | kName2;
    case Op::SetMode:
      return kMode;
    case Op::SetTime:
    case Op::Truncate:
      return kNumber;
    case Op::Reserve:
      return kNumber | kOther;
    case Op::ReadEntries:
      return kStart;
    case Op::Read:
    case Op::Write:
      return kExtents;
    case Op::StageTransaction:
      return kMode | kNumber | kOther | kExtents;
    case Op::PrepareTransaction:
      return kMode | kNumber | kOther | kServers;
    case Op::FinishTransaction:
      return kNumber | kOther;
    case Op::DecideTransaction:
    case Op::ReportOutcome:
    case Op::EndTransaction:
    case Op::Join:
    case Op::FillBegin:
    case Op::FillEnd:
      return kNumber;
    case Op::FillTable:
      return kMode;
    case Op::OpenChannel:
      return kMode | kNumber;
    case Op::Gather:
      return kMode | kNumber | kOther;
    case Op::Lease:
      return kNumber | kOther;
    case Op::GetAttributes:
    case Op::SetWide:
    case Op::Remove:
    case Op::SealDirectory:
    case Op::UnsealDirectory:
    case Op::Sync:
    case Op::Statistics:
    case Op::Destroy:
    case Op::OpenData:
    case Op::LogTransaction:
      break;
  }
  return 0;
}

// Reads the description of the memory that the extents' places refer to.
bool take_remote(Cursor& cursor, RemoteMemory& remote) {
  cursor.take(remote.region);
  cursor.take(remote.nonce);
  cursor.take(remote.offset);
  cursor.take(remote.length);
  return cursor.ok && remote.offset <= UINT64_MAX - remote.length;
}

bool take_extents(Cursor& cursor, Request& request) {
  std::uint32_t count = 0;
  const bool is_remote = (request.flags & kRemote) != 0;
  if (is_remote && !take_remote(cursor, request.remote)) return false;
  cursor.take(count);
  if (!cursor.ok || count == 0 || count > kMaxExtents) return false;
  std::uint64_t total = 0;
  request.extents.resize(count);
  for (Extent& extent : request.extents) {
    std::uint32_t length = 0;
    cursor.take(extent.offset);
    cursor.take(length);
    extent.length = length;
    total += length;
    if (!cursor.ok || !is_valid(extent)) return false;
    if (!is_remote) continue;
    std::uint64_t& place = request.places.emplace_back();
    cursor.take(place);
    const std::uint64_t room = request.remote.length;
    if (!cursor.ok || length > room || place > room - length) return false;
  }
  if (total > kMaxDataBytes) return false;
  if (request.data_bytes == 0) return request.op != Op::Write;
  return takes_data(request.op) && total == request.data_bytes;
}

bool take_servers(Cursor& cursor, Request& request) {
  std::uint16_t count = 0;
  cursor.take(count);
  if (!cursor.ok || count == 0 || count > kMaxServers) return false;
  for (std::uint16_t i = 0; i < count; ++i) {
    std::uint16_t server = 0;
    cursor.take(server);
    if (!cursor.ok || server >= kMaxServers) return false;
    if (i > 0 && server <= request.servers.back()) return false;
    request.servers.push_back(server);
  }
  return true;
}

void take_forwarded(Cursor& cursor, Forwarded& forwarded) {
  cursor.take(forwarded.view);
  cursor.take(forwarded.sequence);
  cursor.take(forwarded.new_id);
  cursor.take(forwarded.time_ns);
}

void take_once(Cursor& cursor, Once& once) {
  cursor.take(once.client);
  cursor.take(once.slot);
  cursor.take(once.sequence);
}

bool take_body(Cursor& cursor, unsigned fields, Request& request) {
  request.forwarded = {};
  request.once = {};
  if ((request.flags & kForwarded) != 0) take_forwarded(cursor, request.forwarded);
  if ((request.flags & kOnce) != 0) take_once(cursor, request.once);
  if (fields & kMode) cursor.take(request.mode);
  if (fields & kNumber) cursor.take(request.number);
  if (fields & kOther) cursor.take(request.other);
  if (fields & (kName | kStart)) cursor.take_text(request.name);
  if (fields & kName2) cursor.take_text(request.name2);
  if (!cursor.ok) return false;
  if ((fields & kName) && !is_valid_name(request.name)) return false;
  if ((fields & kStart) && !request.name.empty() && !is_valid_name(request.name)) return false;
  if ((fields & kName2) && !is_valid_name(request.name2)) return false;
  if ((fields & kServers) && !take_servers(cursor, request)) return false;
  if (fields & kExtents) return take_extents(cursor, request);
  return request.data_bytes == 0 || takes_data(request.op);
}

// Checks that sizes are valid as off_t and that identifiers are not 0.
bool are_numbers_valid(const Request& request) {
  const bool needs_id =
      request.op != Op::Statistics && request.op != Op::OpenChannel && request.op != Op::OpenData;
  if (request.id == 0 && needs_id) return false;
  const bool is_once = (request.flags & kOnce) != 0;
  if (is_once && (request.once.client == 0 || request.once.slot >= kServerWindow)) return false;
  switch (request.op) {
    case Op::Insert:
    case Op::Rename:
      return request.number != 0;
    case Op::Move:
      return request.number != 0 && request.other != 0;
    case Op::SetTime:
    case Op::Truncate:
      return request.number <= kMaxOffset;
    case Op::Reserve:
    case Op::Lease:
      return request.number <= kMaxOffset && request.other <= kMaxOffset;
    case Op::PrepareTransaction:
      return request.number != 0 && std::ranges::binary_search(request.servers, request.other);
    case Op::FinishTransaction:
      return request.number != 0 && request.other <= 1;
    case Op::StageTransaction:
    case Op::DecideTransaction:
    case Op::ReportOutcome:
    case Op::EndTransaction:
      return request.number != 0;
    case Op::OpenChannel:
      return request.mode == static_cast<std::uint32_t>(ChannelKind::Near) ||
             request.mode == static_cast<std::uint32_t>(ChannelKind::Udp) ||
             request.mode == static_cast<std::uint32_t>(ChannelKind::None);
    default:
      return true;
  }
}

}  // namespace

bool is_valid_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name != "." && name != ".." &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

namespace {

void put_extents(std::string& bytes, const Request& request) {
  const bool is_remote = (request.flags & kRemote) != 0;
  if (is_remote) {
    put(bytes, request.remote.region);
    put(bytes, request.remote.nonce);
    put(bytes, request.remote.offset);
    put(bytes, request.remote.length);
  }
  put(bytes, static_cast<std::uint32_t>(request.extents.size()));
  for (std::size_t i = 0; i < request.extents.size(); ++i) {
    put(bytes, request.extents[i].offset);
    put(bytes, static_cast<std::uint32_t>(request.extents[i].length));
    if (is_remote) put(bytes, request.places[i]);
  }
}

}  // namespace

void append_request(const Request& request, std::string& bytes) {
  const std::size_t begin = bytes.size();
  put(bytes, static_cast<std::uint16_t>(request.op));
  put(bytes, request.flags);
  put(bytes, std::uint32_t{0});
  put(bytes, request.data_bytes);
  put(bytes, request.part);
  put(bytes, request.tag);
  put(bytes, request.id);
  if ((request.flags & kForwarded) != 0) {
    put(bytes, request.forwarded.view);
    put(bytes, request.forwarded.sequence);
    put(bytes, request.forwarded.new_id);
    put(bytes, request.forwarded.time_ns);
  }
  if ((request.flags & kOnce) != 0) {
    put(bytes, request.once.client);
    put(bytes, request.once.slot);
    put(bytes, request.once.sequence);
  }
  const unsigned fields = fields_of(request.op);
  if (fields & kMode) put(bytes, request.mode);
  if (fields & kNumber) put(bytes, request.number);
  if (fields & kOther) put(bytes, request.other);
  if (fields & (kName | kStart)) put_text(bytes, request.name);
  if (fields & kName2) put_text(bytes, request.name2);
  if (fields & kServers) {
    put(bytes, static_cast<std::uint16_t>(request.servers.size()));
    for (const std::uint16_t server : request.servers) put(bytes, server);
  }
  if (fields & kExtents) put_extents(bytes, request);
  const auto body = static_cast<std::uint32_t>(bytes.size() - begin - kHeaderBytes);
  std::memcpy(bytes.data() + begin + 4, &body, sizeof body);
}

bool parse_sizes(std::span<const char, kHeaderBytes> header, Sizes& sizes) {
  Cursor cursor{{header.data(), header.size()}};
  std::uint16_t op = 0;
  std::uint16_t flags = 0;
  std::uint32_t part = 0;
  cursor.take(op);
  cursor.take(flags);
  cursor.take(sizes.body);
  cursor.take(sizes.data);
  cursor.take(part);
  const bool is_data =
      op == static_cast<std::uint16_t>(Op::Read) || op == static_cast<std::uint16_t>(Op::Write);
  const int may_be = can_be_once(static_cast<Op>(op)) ? kAllFlags : kAllFlags & ~kOnce;
  const int known = may_be | (is_data ? kRemote : 0);
  return op >= 1 && op <= static_cast<std::uint16_t>(Op::Last) && (flags & ~known) == 0 &&
         part <= kMaxServers && sizes.body <= kMaxBodyBytes &&
         (takes_data(static_cast<Op>(op)) ? sizes.data <= kMaxDataBytes : sizes.data == 0);
}

bool parse_request(std::string_view bytes, Request& request) {
  if (bytes.size() < kHeaderBytes) return false;
  Sizes sizes;
  if (!parse_sizes(std::span<const char, kHeaderBytes>(bytes.data(), kHeaderBytes), sizes) ||
      bytes.size() - kHeaderBytes != sizes.body) {
    return false;
  }
  Cursor cursor{bytes};
  std::uint16_t op = 0;
  std::uint32_t skipped = 0;
  cursor.take(op);
  request.op = static_cast<Op>(op);
  cursor.take(request.flags);
  cursor.take(skipped);
  cursor.take(request.data_bytes);
  cursor.take(request.part);
  cursor.take(request.tag);
  cursor.take(request.id);
  request.extents.clear();
  request.servers.clear();
  request.places.clear();
  return take_body(cursor, fields_of(request.op), request) && cursor.is_done() &&
         are_numbers_valid(request);
}

void append_reply(const Reply& reply, std::string& bytes) {
  put(bytes, reply.error);
  put(bytes, reply.body_bytes);
  put(bytes, reply.data_bytes);
  put(bytes, std::uint32_t{0});
  put(bytes, reply.tag);
  put(bytes, reply.number);
}

bool parse_reply(std::span<const char, kHeaderBytes> bytes, Reply& reply) {
  Cursor cursor{{bytes.data(), bytes.size()}};
  std::uint32_t zero = 0;
  cursor.take(reply.error);
  cursor.take(reply.body_bytes);
  cursor.take(reply.data_bytes);
  cursor.take(zero);
  cursor.take(reply.tag);
  cursor.take(reply.number);
  return reply.body_bytes <= kMaxReplyBodyBytes && reply.data_bytes <= kMaxDataBytes && zero == 0 &&
         reply.error < 4096;
}

void append_attributes(const Attributes& attributes, std::string& bytes) {
  put(bytes, attributes.id);
  put(bytes, attributes.mode);
  put(bytes, attributes.wide);
  put(bytes, attributes.size);
  put(bytes, attributes.blocks);
  put(bytes, attributes.modified_ns);
  put(bytes, attributes.changed_ns);
}

bool parse_attributes(std::string_view bytes, Attributes& attributes) {
  Cursor cursor{bytes};
  cursor.take(attributes.id);
  cursor.take(attributes.mode);
  cursor.take(attributes.wide);
  cursor.take(attributes.size);
  cursor.take(attributes.blocks);
  cursor.take(attributes.modified_ns);
  cursor.take(attributes.changed_ns);
  return cursor.is_done() && attributes.size <= kMaxOffset;
}

void append_entry(FileId id, std::uint32_t mode, std::string_view name, std::string& bytes) {
  put(bytes, id);
  put(bytes, mode);
  put_text(bytes, name);
}

bool parse_entries(std::string_view bytes, std::vector<Entry>& entries) {
  Cursor cursor{bytes};
  while (cursor.ok && !cursor.left.empty()) {
    Entry entry;
    std::string_view name;
    cursor.take(entry.id);
    cursor.take(entry.mode);
    cursor.take_text(name);
    if (!cursor.ok || !is_valid_name(name)) return false;
    entry.name = name;
    entries.push_back(std::move(entry));
  }
  return cursor.ok;
}

void append_statistics(const Statistics& statistics, std::string& bytes) {
  for (const std::uint64_t value :
       {statistics.capacity, statistics.used, statistics.files, statistics.requests,
        statistics.bytes_read, statistics.bytes_written, statistics.refused_keys,
        statistics.refused_requests, statistics.refused_slow, statistics.queue, statistics.pm_bytes,
        statistics.pm_clients, statistics.tcp_fallbacks}) {
    put(bytes, value);
  }
}

bool parse_statistics(std::string_view bytes, Statistics& statistics) {
  Cursor cursor{bytes};
  for (std::uint64_t* value :
       {&statistics.capacity, &statistics.used, &statistics.files, &statistics.requests,
        &statistics.bytes_read, &statistics.bytes_written, &statistics.refused_keys,
        &statistics.refused_requests, &statistics.refused_slow, &statistics.queue,
        &statistics.pm_bytes, &statistics.pm_clients, &statistics.tcp_fallbacks}) {
    cursor.take(*value);
  }
  return cursor.is_done();
}

void append_offer(const ChannelOffer& offer, std::string& bytes) {
  put(bytes, offer.key);
  put(bytes, offer.address);
  put(bytes, offer.process);
  put(bytes, offer.server_context);
  put(bytes, offer.client_context);
  put(bytes, offer.payload);
}

bool parse_offer(std::string_view bytes, ChannelOffer& offer) {
  Cursor cursor{bytes};
  cursor.take(offer.key);
  cursor.take(offer.address);
  cursor.take(offer.process);
  cursor.take(offer.server_context);
  cursor.take(offer.client_context);
  cursor.take(offer.payload);
  return cursor.is_done();
}

void append_place(const DataPlace& place, std::string& bytes) {
  put(bytes, place.process);
  put(bytes, place.directory);
  put(bytes, place.device);
  put(bytes, place.inode);
}

bool parse_place(std::string_view bytes, DataPlace& place) {
  Cursor cursor{bytes};
  cursor.take(place.process);
  cursor.take(place.directory);
  cursor.take(place.device);
  cursor.take(place.inode);
  return cursor.is_done();
}

std::uint64_t pack_address(const AddressBytes& address) {
  std::uint64_t packed = 0;
  for (const std::uint8_t byte : address) packed = packed << 8 | byte;
  return packed;
}

AddressBytes unpack_address(std::uint64_t packed) {
  AddressBytes address{};
  for (std::size_t i = address.size(); i-- > 0; packed >>= 8) {
    address[i] = static_cast<std::uint8_t>(packed);
  }
  return address;
}

Proof make_proof(const Key& key, const ProofOf& of) {
  pm::SipKey sip;
  std::memcpy(&sip.low, key.data(), 8);
  std::memcpy(&sip.high, key.data() + 8, 8);
  Proof proof{};
  for (std::uint32_t half = 0; half < 2; ++half) {
    std::string text;
    put(text, half);
    put(text, std::uint32_t{of.by_client ? 1U : 2U});
    put(text, of.server);
    text.append(of.server_nonce.data(), of.server_nonce.size());
    text.append(of.client_nonce.data(), of.client_nonce.size());
    text += of.volume;
    const std::uint64_t hash = pm::SipHash(sip).finish(std::as_bytes(std::span(text)));
    std::memcpy(proof.data() + std::size_t{half} * 8, &hash, sizeof hash);
  }
  return proof;
}

bool is_equal(const Proof& a, const Proof& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace score::pario
