#include "scored/job/checkpoint/socket_images.hpp"

#include "base/errc.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace score::shepherd {

namespace {

constexpr std::size_t kMagicBytes = 8;
constexpr std::uint64_t kRegularFile = 1;  // fd_types of criu
constexpr std::uint64_t kInetSocket = 4;
constexpr unsigned kVarint = 0;  // wire types of Protocol Buffers
constexpr unsigned kFixed64 = 1;
constexpr unsigned kBytes = 2;
constexpr unsigned kFixed32 = 5;

// Fields of file_entry, fdinfo_entry, inet_sk_entry and reg_file_entry.
enum Entry : std::uint32_t { kType = 1, kId = 2, kFile = 3, kSocket = 4 };

enum Descriptor : std::uint32_t { kEntryId = 1, kDescriptorType = 3 };

enum Socket : std::uint32_t { kInode = 2, kSocketFlags = 9, kSocketOwner = 13 };

enum File : std::uint32_t { kFileId = 1, kFileFlags = 2, kPosition = 3, kFileOwner = 5, kName = 6 };

struct Field {
  std::uint32_t number = 0;
  std::uint64_t value = 0;  // of a varint
  std::string_view bytes;   // of a message or string
  std::string_view whole;   // as it is encoded
};

base::Error malformed() {
  return base::fail(base::Errc::Malformed, "an image of criu cannot be read");
}

std::optional<std::uint64_t> take_varint(std::string_view& from) {
  constexpr unsigned kBits = 64;
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < kBits && !from.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(from.front());
    from.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> take_bytes(std::string_view& from, std::uint64_t count) {
  if (count > from.size()) return std::nullopt;
  const auto taken = from.substr(0, count);
  from.remove_prefix(count);
  return taken;
}

std::optional<Field> take_field(std::string_view& from) {
  const std::string_view before = from;
  const auto key = take_varint(from);
  if (!key || *key >> 3U == 0 || *key > UINT32_MAX) return std::nullopt;
  Field field;
  field.number = static_cast<std::uint32_t>(*key >> 3U);
  const unsigned type = *key & 7U;
  const auto length = type == kVarint || type == kBytes ? take_varint(from) : std::optional(0UL);
  if (!length) return std::nullopt;
  std::optional<std::string_view> rest = std::string_view();
  if (type == kVarint) field.value = *length;
  if (type == kBytes) rest = take_bytes(from, *length);
  if (type == kFixed64) rest = take_bytes(from, sizeof(std::uint64_t));
  if (type == kFixed32) rest = take_bytes(from, sizeof(std::uint32_t));
  const bool is_known = type <= kBytes || type == kFixed32;
  if (!rest || !is_known) return std::nullopt;
  field.bytes = *rest;
  field.whole = before.substr(0, before.size() - from.size());
  return field;
}

std::optional<std::vector<Field>> fields_of(std::string_view message) {
  std::vector<Field> fields;
  while (!message.empty()) {
    const auto field = take_field(message);
    if (!field) return std::nullopt;
    fields.push_back(*field);
  }
  return fields;
}

// Returns the last field of that number, or an empty one.
Field find(const std::vector<Field>& fields, std::uint32_t number) {
  const auto at = std::find_if(fields.rbegin(), fields.rend(),
                               [=](const Field& field) { return field.number == number; });
  return at == fields.rend() ? Field{} : *at;
}

void add_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) to.push_back(static_cast<char>((value & 0x7fU) | 0x80U));
  to.push_back(static_cast<char>(value));
}

void add(std::string& to, std::uint32_t number, std::uint64_t value) {
  add_varint(to, number << 3U | kVarint);
  add_varint(to, value);
}

void add(std::string& to, std::uint32_t number, std::string_view bytes) {
  add_varint(to, number << 3U | kBytes);
  add_varint(to, bytes.size());
  to += bytes;
}

std::string file_of(const std::vector<Field>& socket, std::uint64_t id, std::uint64_t index) {
  std::string file;
  add(file, kFileId, id);
  add(file, kFileFlags, find(socket, kSocketFlags).value);
  add(file, kPosition, std::uint64_t{0});
  add(file, kFileOwner, find(socket, kSocketOwner).bytes);
  add(file, kName, "/" + socket_name(index));
  std::string entry;
  add(entry, kType, kRegularFile);
  add(entry, kId, id);
  add(entry, kFile, file);
  return entry;
}

// Returns the image with each entry as `change` returns it; nothing: the entry cannot be read.
using Change =
    std::function<std::optional<std::string>(const std::vector<Field>&, std::string_view)>;

base::Result<std::string> change_entries(std::string_view image, const Change& change) {
  if (image.size() < kMagicBytes) return malformed();
  std::string out(image.substr(0, kMagicBytes));
  image.remove_prefix(kMagicBytes);
  while (!image.empty()) {
    std::uint32_t length = 0;
    const auto head = take_bytes(image, sizeof length);
    if (!head) return malformed();
    std::memcpy(&length, head->data(), sizeof length);
    const auto message = take_bytes(image, length);
    const auto fields = message ? fields_of(*message) : std::nullopt;
    const auto entry = fields ? change(*fields, *message) : std::nullopt;
    if (!entry) return malformed();
    length = static_cast<std::uint32_t>(entry->size());
    out.append(reinterpret_cast<const char*>(&length), sizeof length);
    out += *entry;
  }
  return out;
}

}  // namespace

std::string socket_name(std::uint64_t index) {
  return "scored-socket-" + std::to_string(index);
}

base::Result<std::string> replace_sockets(std::string_view files,
                                          std::span<const std::uint64_t> inodes,
                                          std::set<std::uint64_t>& ids) {
  return change_entries(files, [&](const auto& fields, std::string_view message) {
    std::optional<std::string> entry(message);
    if (find(fields, kType).value != kInetSocket) return entry;
    const auto socket = fields_of(find(fields, kSocket).bytes);
    if (!socket) return std::optional<std::string>();
    const auto at = std::ranges::find(inodes, find(*socket, kInode).value);
    if (at == inodes.end()) return entry;
    const std::uint64_t id = find(fields, kId).value;
    ids.insert(id);
    return std::optional(file_of(*socket, id, static_cast<std::uint64_t>(at - inodes.begin())));
  });
}

base::Result<std::string> replace_descriptors(std::string_view descriptors,
                                              const std::set<std::uint64_t>& ids) {
  return change_entries(descriptors, [&](const auto& fields, std::string_view message) {
    const bool is_socket = find(fields, kDescriptorType).value == kInetSocket &&
                           ids.contains(find(fields, kEntryId).value);
    if (!is_socket) return std::optional<std::string>(message);
    std::string entry;
    for (const Field& field : fields) {
      if (field.number == kDescriptorType) {
        add(entry, kDescriptorType, kRegularFile);
      } else {
        entry += field.whole;
      }
    }
    return std::optional(std::move(entry));
  });
}

}  // namespace score::shepherd
