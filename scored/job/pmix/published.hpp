#pragma once
// Converts data that tasks publish between libpmix's structs and the exchange's items. A value is
// sent as its type and its bytes: text, byte objects and plain numbers. This works because all
// nodes of a cluster have the same architecture.

#include "scored/job/pmix/exchange.hpp"

#include <pmix_common.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace score::pmix {

// Returns nullopt if the type is not supported (lists, pointers).
std::optional<std::string> encode_value(const pmix_value_t& value);

// Fills *value, which then owns its memory (PMIX_VALUE_DESTRUCT). Returns false and leaves the
// value undefined if the bytes are not those of encode_value().
bool decode_value(std::string_view bytes, pmix_value_t* value);

// Returns the published data among `infos`; keys that begin with "pmix" direct the request instead.
// Returns nullopt if one has a value that is not supported.
std::optional<std::vector<PublishedItem>> items_of(std::uint32_t owner,
                                                   std::span<const pmix_info_t> infos);

// Owns the array of values that libpmix receives as an answer.
class LookupResult {
 public:
  // Returns the process of an owner's number in the job.
  using ProcessOf = std::function<pmix_proc_t(std::uint32_t owner)>;

  // Invalid items are left out.
  LookupResult(const std::vector<PublishedItem>& items, const ProcessOf& process_of);
  ~LookupResult();
  LookupResult(const LookupResult&) = delete;
  LookupResult& operator=(const LookupResult&) = delete;

  [[nodiscard]] pmix_pdata_t* data() { return found_.data(); }

  [[nodiscard]] std::size_t size() const { return found_.size(); }

 private:
  std::vector<pmix_pdata_t> found_;
};

}  // namespace score::pmix
