// This module is tested by pmix_flow_test.cpp.
#include "scored/job/pmix/info_list.hpp"

#include <pmix.h>

#include <algorithm>

namespace score::pmix {

InfoList::~InfoList() {
  for (auto& info : infos_) PMIX_INFO_DESTRUCT(&info);
}

void InfoList::add_value(const char* key, const void* value, pmix_data_type_t type) {
  auto& info = infos_.emplace_back();
  PMIX_INFO_LOAD(&info, key, value, type);
}

void InfoList::add(const char* key, const std::string& value) {
  add_value(key, value.c_str(), PMIX_STRING);
}

void InfoList::add(const char* key, bool value) {
  add_value(key, &value, PMIX_BOOL);
}

void InfoList::add_u32(const char* key, std::uint32_t value) {
  add_value(key, &value, PMIX_UINT32);
}

void InfoList::add_u16(const char* key, std::uint16_t value) {
  add_value(key, &value, PMIX_UINT16);
}

void InfoList::add_size(const char* key, std::size_t value) {
  add_value(key, &value, PMIX_SIZE);
}

void InfoList::add_bytes(const char* key, const std::string& value) {
  const pmix_byte_object_t bytes{const_cast<char*>(value.data()), value.size()};  // read only
  add_value(key, &bytes, PMIX_BYTE_OBJECT);
}

void InfoList::add_rank(const char* key, pmix_rank_t value) {
  add_value(key, &value, PMIX_PROC_RANK);
}

void InfoList::add_list(const char* key, InfoList& list) {
  pmix_data_array_t* array = nullptr;
  PMIX_DATA_ARRAY_CREATE(array, list.size(), PMIX_INFO);
  std::ranges::copy(list.infos_, static_cast<pmix_info_t*>(array->array));
  list.infos_.clear();
  auto& info = infos_.emplace_back();
  PMIX_INFO_CONSTRUCT(&info);
  PMIX_LOAD_KEY(info.key, key);
  info.value.type = PMIX_DATA_ARRAY;
  info.value.data.darray = array;
}

}  // namespace score::pmix
