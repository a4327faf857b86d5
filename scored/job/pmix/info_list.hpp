#pragma once
// Owns an array of pmix_info_t, which is filled key by key. Values are copied.

#include <pmix_common.h>

#include <cstdint>
#include <string>
#include <vector>

namespace score::pmix {

class InfoList {
 public:
  InfoList() = default;
  ~InfoList();
  InfoList(const InfoList&) = delete;
  InfoList& operator=(const InfoList&) = delete;

  // The key must be one of PMIx's, which also determines the type of its value.
  void add(const char* key, const std::string& value);
  void add(const char* key, bool value);
  void add_u32(const char* key, std::uint32_t value);
  void add_u16(const char* key, std::uint16_t value);
  void add_size(const char* key, std::size_t value);
  void add_bytes(const char* key, const std::string& value);
  void add_rank(const char* key, pmix_rank_t value);
  // Adds a value that is itself a list; the list is left empty.
  void add_list(const char* key, InfoList& list);

  [[nodiscard]] pmix_info_t* data() { return infos_.data(); }

  [[nodiscard]] std::size_t size() const { return infos_.size(); }

 private:
  void add_value(const char* key, const void* value, pmix_data_type_t type);

  std::vector<pmix_info_t> infos_;  // plain C structs, which may move in memory
};

}  // namespace score::pmix
