#include "scored/job/pmix/published.hpp"

#include <pmix.h>

#include <cstdlib>
#include <cstring>

namespace score::pmix {

namespace {

using Type = decltype(pmix_value_t::type);

// Returns how many bytes a number of that type has in the value's union; 0 if it is not a number.
std::size_t bytes_of_number(Type type) {
  switch (type) {
    case PMIX_BOOL:
      return sizeof(bool);
    case PMIX_BYTE:
    case PMIX_INT8:
    case PMIX_UINT8:
      return 1;
    case PMIX_INT16:
    case PMIX_UINT16:
      return 2;
    case PMIX_INT:
    case PMIX_UINT:
    case PMIX_INT32:
    case PMIX_UINT32:
    case PMIX_FLOAT:
    case PMIX_STATUS:
    case PMIX_PROC_RANK:
      return 4;
    case PMIX_SIZE:
    case PMIX_INT64:
    case PMIX_UINT64:
    case PMIX_DOUBLE:
      return 8;
    default:
      return 0;
  }
}

std::string with_type(Type type, const void* bytes, std::size_t count) {
  std::string out(sizeof type + count, '\0');
  std::memcpy(out.data(), &type, sizeof type);
  if (count > 0) std::memcpy(out.data() + sizeof type, bytes, count);
  return out;
}

bool decode_object(std::string_view bytes, pmix_value_t* value) {
  value->data.bo.size = bytes.size();
  if (bytes.empty()) return true;
  value->data.bo.bytes = static_cast<char*>(std::malloc(bytes.size()));  // NOLINT: PMIx frees it
  if (value->data.bo.bytes == nullptr) return false;
  std::memcpy(value->data.bo.bytes, bytes.data(), bytes.size());
  return true;
}

}  // namespace

std::optional<std::string> encode_value(const pmix_value_t& value) {
  if (value.type == PMIX_STRING) {
    const char* text = value.data.string == nullptr ? "" : value.data.string;
    return with_type(value.type, text, std::strlen(text));
  }
  if (value.type == PMIX_BYTE_OBJECT) {
    return with_type(value.type, value.data.bo.bytes, value.data.bo.size);
  }
  const std::size_t count = bytes_of_number(value.type);
  if (count == 0) return std::nullopt;
  return with_type(value.type, &value.data, count);
}

bool decode_value(std::string_view bytes, pmix_value_t* value) {
  PMIX_VALUE_CONSTRUCT(value);
  Type type = PMIX_UNDEF;
  if (bytes.size() < sizeof type) return false;
  std::memcpy(&type, bytes.data(), sizeof type);
  bytes.remove_prefix(sizeof type);
  const std::size_t count = bytes_of_number(type);
  const bool is_number = count > 0 && bytes.size() == count;
  if (!is_number && type != PMIX_STRING && type != PMIX_BYTE_OBJECT) return false;
  value->type = type;
  if (type == PMIX_BYTE_OBJECT) return decode_object(bytes, value);
  if (type == PMIX_STRING) {
    value->data.string = strndup(bytes.data(), bytes.size());
    return value->data.string != nullptr;
  }
  std::memcpy(&value->data, bytes.data(), count);
  return true;
}

std::optional<std::vector<PublishedItem>> items_of(std::uint32_t owner,
                                                   std::span<const pmix_info_t> infos) {
  std::vector<PublishedItem> items;
  for (const auto& info : infos) {
    const std::string key(info.key, strnlen(info.key, sizeof info.key));
    if (key.starts_with("pmix")) continue;
    auto value = encode_value(info.value);
    if (!value) return std::nullopt;
    items.push_back({owner, key, std::move(*value)});
  }
  return items;
}

LookupResult::LookupResult(const std::vector<PublishedItem>& items, const ProcessOf& process_of) {
  for (const auto& item : items) {
    pmix_pdata_t found;
    PMIX_PDATA_CONSTRUCT(&found);
    found.proc = process_of(item.owner);
    PMIX_LOAD_KEY(found.key, item.key.c_str());
    if (decode_value(item.value, &found.value)) found_.push_back(found);
  }
}

LookupResult::~LookupResult() {
  for (auto& found : found_) PMIX_PDATA_DESTRUCT(&found);
}

}  // namespace score::pmix
