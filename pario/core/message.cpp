// One table lists the fields of each operation, and visit_body() passes them to the encoder or the
// decoder in the order of the bytes.
#include "pario/core/message.hpp"

#include "pario/core/transaction_log.hpp"
#include "pmlib/wire/siphash.hpp"

#include <algorithm>
#include <cstring>
#include <sys/stat.h>

namespace score::pario {
namespace {

struct Header {
  std::uint16_t op = 0;
  std::uint16_t flags = 0;
  Sizes sizes;
  std::uint32_t part = 0;
  std::uint64_t tag = 0;
  FileId id = 0;
};

static_assert(sizeof(Header) == kHeaderBytes && sizeof(Reply) == kHeaderBytes);

enum Field : unsigned {
  kMode = 1,
  kNumber = 2,
  kOther = 4,
  kName = 8,
  kStart = 16,  // a name that may be empty
  kName2 = 32,
  kServers = 64,  // ascending; `other` is one of them
  kExtents = 128,
  kData = 256,  // data may follow the body
  // These are rules for the fields.
  kNotZero = 512,    // `number` is set
  kOffsets = 1'024,  // `number` and `other` are at most kMaxOffset
  kAnyFile = 2'048,  // the id may be 0
};

struct Operation {
  unsigned fields = 0;
  int flags = kExclusive | kDirectory | kStable | kStamped | kForwarded | kOpened |
              kWillOpen;  // those allowed
};

// Operations that are not listed have only an id.
constexpr auto kOperations = [] {
  std::array<Operation, static_cast<std::size_t>(Op::Last) + 1> all{};
  const auto set = [&all](Op op, unsigned fields, int flags = 0) {
    all[static_cast<std::size_t>(op)].fields = fields;
    all[static_cast<std::size_t>(op)].flags |= flags;
  };
  set(Op::Lookup, kName);
  set(Op::Create, kMode | kName | kData, kOnce | kLocalLayout);
  set(Op::Unlink, kNumber | kName, kOnce | kKept);
  set(Op::Insert, kMode | kNumber | kName | kNotZero, kOnce | kExchange);
  set(Op::Rename, kNumber | kName | kName2 | kNotZero, kOnce | kExchange);
  set(Op::SetMode, kMode);
  set(Op::SetTime, kMode | kNumber | kOther);
  set(Op::Remove, 0, kOnce | kNameless | kKept | kPurge);
  set(Op::ReadEntries, kStart);
  set(Op::Truncate, kNumber | kOffsets);
  set(Op::Read, kExtents, kRemote);
  set(Op::Write, kExtents | kData, kRemote);
  set(Op::Reserve, kNumber | kOther | kOffsets, kOnce);
  set(Op::Statistics, kAnyFile);
  set(Op::StageTransaction, kMode | kNumber | kOther | kExtents | kData | kNotZero);
  set(Op::PrepareTransaction, kMode | kNumber | kOther | kServers | kNotZero);
  set(Op::DecideTransaction, kNumber | kNotZero);
  set(Op::FinishTransaction, kNumber | kOther | kNotZero);
  set(Op::ReportOutcome, kNumber | kNotZero);
  set(Op::EndTransaction, kNumber | kNotZero);
  set(Op::Join, kNumber);
  set(Op::FillBegin, kNumber);
  set(Op::FillTable, kMode | kData);
  set(Op::FillEnd, kNumber);
  set(Op::Move, kMode | kNumber | kOther | kName | kName2 | kNotZero, kOnce);
  set(Op::OpenChannel, kMode | kNumber | kAnyFile);
  set(Op::Gather, kMode | kNumber | kOther);
  set(Op::OpenData, kAnyFile);
  set(Op::Lease, kNumber | kOther | kOffsets);
  set(Op::LogTransaction, kData);
  set(Op::ChangeLinks, kNumber, kOnce);
  set(Op::GetValue, kStart);
  set(Op::SetValue, kMode | kName | kData);
  set(Op::Allocate, kMode | kNumber | kOther | kOffsets);
  set(Op::Seek, kMode | kNumber | kOffsets);
  set(Op::SetGroup, kMode);
  set(Op::MakeFile, kMode, kOnce | kLocalLayout);
  set(Op::Hold, kNumber | kData | kNotZero);
  set(Op::Lock, kMode | kNumber | kData | kNotZero);
  set(Op::SettleTime, kNumber | kOther);
  set(Op::Copy, kMode | kNumber | kOther | kExtents);
  return all;
}();

constexpr const Operation& operation(Op op) {
  return kOperations[static_cast<std::size_t>(op)];
}

// Passes the fields in the order of the bytes.
void visit_body(auto& request, auto&& visit) {
  const unsigned fields = operation(request.op).fields;
  if (request.flags & kForwarded) visit(request.forwarded);
  if (request.flags & kOnce) visit(request.once);
  if (fields & kMode) visit(request.mode);
  if (fields & kNumber) visit(request.number);
  if (fields & kOther) visit(request.other);
  if (fields & (kName | kStart)) visit(request.name);
  if (fields & kName2) visit(request.name2);
  if (fields & kServers) visit(request.servers);
  if ((fields & kExtents) && (request.flags & kRemote)) visit(request.remote);
  if (fields & kExtents) visit(request.extents, request.places);
}

struct Encoder {
  std::string& bytes;
  bool is_remote;

  void operator()(const auto& field) { put(bytes, field); }

  void operator()(std::string_view text) { put_text(bytes, text); }

  void operator()(const std::vector<std::uint16_t>& list) { put_list(bytes, list); }

  void operator()(const std::vector<Extent>& extents, const std::vector<std::uint64_t>& places) {
    put(bytes, static_cast<std::uint32_t>(extents.size()));
    for (std::size_t i = 0; i < extents.size(); ++i) {
      put(bytes, extents[i].offset, static_cast<std::uint32_t>(extents[i].length));
      if (is_remote) put(bytes, places[i]);
    }
  }
};

struct Decoder {
  Cursor& cursor;
  bool is_remote;

  void operator()(auto& field) { cursor.take(field); }

  void operator()(std::string_view& text) { cursor.take_text(text); }

  void operator()(std::vector<std::uint16_t>& list) { cursor.take_list(kMaxServers, list); }

  void operator()(std::vector<Extent>& extents, std::vector<std::uint64_t>& places) {
    std::uint32_t count = 0;
    cursor.take(count);
    cursor.ok = cursor.ok && count > 0 && count <= kMaxExtents;
    extents.resize(cursor.ok ? count : 0);
    places.resize(is_remote ? extents.size() : 0);
    for (std::size_t i = 0; i < extents.size(); ++i) {
      std::uint32_t length = 0;
      cursor.take(extents[i].offset, length);
      extents[i].length = length;
      if (is_remote) cursor.take(places[i]);
    }
  }
};

bool is_header_valid(const Header& header) {
  if (header.op == 0 || header.op > static_cast<std::uint16_t>(Op::Last)) return false;
  const auto& [fields, flags] = operation(static_cast<Op>(header.op));
  const std::size_t most_data = fields & kData ? kMaxDataBytes : 0;
  return (header.flags & ~flags) == 0 && header.part <= kMaxServers &&
         header.sizes.body <= kMaxBodyBytes && header.sizes.data <= most_data;
}

bool are_extents_valid(const Request& request) {
  const RemoteMemory& remote = request.remote;
  const bool is_remote = !request.places.empty();
  if (is_remote && remote.offset > UINT64_MAX - remote.length) return false;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < request.extents.size(); ++i) {
    const std::uint64_t length = request.extents[i].length;
    if (!is_valid(request.extents[i])) return false;
    const bool is_inside =
        !is_remote || (length <= remote.length && request.places[i] <= remote.length - length);
    if (!is_inside) return false;
    total += length;
  }
  return total <= kMaxDataBytes &&
         (request.data_bytes == 0 ? request.op != Op::Write : total == request.data_bytes);
}

bool is_copy_valid(const Request& request) {
  return request.extents.size() == 1 && request.other != 0 && request.mode < kMaxServers &&
         is_valid(Extent{request.number, request.extents[0].length});
}

bool is_data_valid(const Request& request) {
  if (request.op == Op::SetValue) return request.data_bytes <= kMaxValueBytes;
  if (request.op != Op::Create) return true;
  return S_ISLNK(request.mode) ? request.data_bytes > 0 && request.data_bytes <= kMaxTargetBytes
                               : request.data_bytes == 0;
}

bool is_body_valid(const Request& request) {
  const unsigned fields = operation(request.op).fields;
  if (request.id == 0 && !(fields & kAnyFile)) return false;
  const Once& once = request.once;
  if ((request.flags & kOnce) && (once.client == 0 || once.slot >= kServerWindow)) return false;
  if ((fields & kName) && !is_valid_name(request.name)) return false;
  if ((fields & kStart) && !request.name.empty() && !is_valid_name(request.name)) return false;
  if ((fields & kName2) && !is_valid_name(request.name2)) return false;
  if ((fields & kNotZero) && request.number == 0) return false;
  if ((fields & kOffsets) && request.number > kMaxOffset) return false;
  if ((fields & kOffsets) && (fields & kOther) && request.other > kMaxOffset) return false;
  if (request.op == Op::Copy && !is_copy_valid(request)) return false;
  if (fields & kExtents) return are_extents_valid(request);
  if (!is_data_valid(request)) return false;
  if (fields & kServers) return are_participants(request.servers, request.other);
  if (request.op == Op::Move) return request.other != 0;
  if (request.op == Op::FinishTransaction) return request.other <= 1;
  return request.op != Op::OpenChannel ||
         (request.mode >= static_cast<std::uint32_t>(ChannelKind::Near) &&
          request.mode <= static_cast<std::uint32_t>(ChannelKind::None));
}

}  // namespace

bool can_be_once(Op op) {
  return (operation(op).flags & kOnce) != 0;
}

bool takes_data(Op op) {
  return (operation(op).fields & kData) != 0;
}

bool is_valid_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name != "." && name != ".." &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

void append_request(const Request& request, std::string& bytes) {
  const std::size_t begin = bytes.size();
  bytes.append(kHeaderBytes, '\0');
  visit_body(request, Encoder{bytes, (request.flags & kRemote) != 0});
  const auto body = static_cast<std::uint32_t>(bytes.size() - begin - kHeaderBytes);
  const Header header{static_cast<std::uint16_t>(request.op),
                      request.flags,
                      {body, request.data_bytes},
                      request.part,
                      request.tag,
                      request.id};
  std::memcpy(bytes.data() + begin, &header, kHeaderBytes);
}

bool parse_sizes(std::span<const char, kHeaderBytes> bytes, Sizes& sizes) {
  Header header;
  std::memcpy(&header, bytes.data(), kHeaderBytes);
  sizes = header.sizes;
  return is_header_valid(header);
}

bool parse_request(std::string_view bytes, Request& request) {
  Cursor cursor{bytes};
  Header header;
  cursor.take(header);
  if (!is_header_valid(header) || cursor.left.size() != header.sizes.body) return false;
  request.op = static_cast<Op>(header.op);
  request.flags = header.flags;
  request.data_bytes = header.sizes.data;
  request.part = header.part;
  request.tag = header.tag;
  request.id = header.id;
  request.forwarded = {};
  request.once = {};
  request.extents.clear();
  request.servers.clear();
  request.places.clear();
  visit_body(request, Decoder{cursor, (request.flags & kRemote) != 0});
  return cursor.is_done() && is_body_valid(request);
}

bool parse_reply(std::span<const char, kHeaderBytes> bytes, Reply& reply) {
  return parse_body({bytes.data(), bytes.size()}, reply) &&
         reply.body_bytes <= kMaxReplyBodyBytes && reply.data_bytes <= kMaxDataBytes &&
         reply.zero == 0 && reply.error < 4096;
}

bool parse_body(std::string_view bytes, Attributes& attributes) {
  return parse_body<Attributes>(bytes, attributes) && attributes.size <= kMaxOffset;
}

void append_entry(FileId id, std::uint32_t mode, std::string_view name, std::string& bytes) {
  put(bytes, id, mode);
  put_text(bytes, name);
}

bool parse_entries(std::string_view bytes, std::vector<Entry>& entries) {
  Cursor cursor{bytes};
  while (!cursor.left.empty()) {
    Entry& entry = entries.emplace_back();
    std::string_view name;
    cursor.take(entry.id, entry.mode);
    cursor.take_text(name);
    if (!cursor.ok || !is_valid_name(name)) return false;
    entry.name = name;
  }
  return true;
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
