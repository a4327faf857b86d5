#pragma once
// What tasks publish, between libpmix's structs and the exchange's items. A value travels as its
// type and its bytes: text, byte objects and plain numbers; nodes of a cluster are of one kind.

#include "scored/job/pmix/exchange.hpp"

#include <pmix_common.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace score::pmix {

// nullopt: of a type that is not carried (lists, pointers).
std::optional<std::string> encode_value(const pmix_value_t& value);

// Fills *value, which then owns its memory (PMIX_VALUE_DESTRUCT). False, and an undefined value:
// no bytes of encode_value().
bool decode_value(std::string_view bytes, pmix_value_t* value);

// The published data among `infos`; keys that begin with "pmix" direct the request instead.
// nullopt: one has a value that is not carried.
std::optional<std::vector<PublishedItem>> items_of(std::uint32_t owner,
                                                   std::span<const pmix_info_t> infos);

// What libpmix is given of an answer: an array that owns its values.
class LookupResult {
 public:
  // Of an owner's number in the job.
  using ProcessOf = std::function<pmix_proc_t(std::uint32_t owner)>;

  // Items that make no sense are left out.
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
