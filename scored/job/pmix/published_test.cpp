#include "scored/job/pmix/published.hpp"

#include <gtest/gtest.h>
#include <pmix.h>

#include <cstring>

namespace score::pmix {
namespace {

class Value {
 public:
  Value() { PMIX_VALUE_CONSTRUCT(&value); }

  Value(const void* data, pmix_data_type_t type) {
    PMIX_VALUE_CONSTRUCT(&value);
    PMIX_VALUE_LOAD(&value, data, type);
  }

  ~Value() { PMIX_VALUE_DESTRUCT(&value); }

  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  pmix_value_t value;
};

TEST(Published, TextAndNumbersSurviveEncoding) {
  const Value text("tag#0$port", PMIX_STRING);
  Value text_back;
  ASSERT_TRUE(decode_value(*encode_value(text.value), &text_back.value));
  EXPECT_STREQ(text_back.value.data.string, "tag#0$port");
  const double real = 2.5;
  const Value number(&real, PMIX_DOUBLE);
  Value number_back;
  ASSERT_TRUE(decode_value(*encode_value(number.value), &number_back.value));
  EXPECT_EQ(number_back.value.type, PMIX_DOUBLE);
  EXPECT_EQ(number_back.value.data.dval, 2.5);
}

TEST(Published, ByteObjectsKeepTheirZeros) {
  char bytes[] = {1, 0, 2};
  pmix_byte_object_t object{.bytes = bytes, .size = sizeof bytes};
  const Value value(&object, PMIX_BYTE_OBJECT);
  Value back;
  ASSERT_TRUE(decode_value(*encode_value(value.value), &back.value));
  ASSERT_EQ(back.value.data.bo.size, sizeof bytes);
  EXPECT_EQ(std::memcmp(back.value.data.bo.bytes, bytes, sizeof bytes), 0);
}

TEST(Published, PointerValuesAreRefused) {
  int here = 0;
  const Value pointer(&here, PMIX_POINTER);
  EXPECT_EQ(encode_value(pointer.value), std::nullopt);
}

TEST(Published, DirectivesAreNotPublished) {
  pmix_info_t infos[2];
  int range = PMIX_RANGE_SESSION;
  PMIX_INFO_LOAD(&infos[0], PMIX_RANGE, &range, PMIX_INT);
  PMIX_INFO_LOAD(&infos[1], "service", "port", PMIX_STRING);
  const auto items = items_of(3, infos);
  ASSERT_TRUE(items);
  ASSERT_EQ(items->size(), 1U);
  EXPECT_EQ(items->front().key, "service");
  EXPECT_EQ(items->front().owner, 3U);
  for (auto& info : infos) PMIX_INFO_DESTRUCT(&info);
}

TEST(Published, InvalidBytesAreRefused) {
  const Value value("text", PMIX_STRING);
  const auto good = *encode_value(value.value);
  for (std::size_t length = 0; length < sizeof(pmix_data_type_t); ++length) {
    Value back;
    EXPECT_FALSE(decode_value(std::string_view(good).substr(0, length), &back.value)) << length;
  }
  const std::uint64_t eight = 8;
  const Value number(&eight, PMIX_UINT64);
  const auto bytes = *encode_value(number.value);
  Value back;
  EXPECT_FALSE(decode_value(bytes.substr(0, bytes.size() - 1), &back.value));
  EXPECT_FALSE(decode_value(bytes + "x", &back.value));
  for (int type = 0; type < 0x10000; ++type) {  // every possible type
    std::string claimed = bytes;
    const auto word = static_cast<pmix_data_type_t>(type);
    std::memcpy(claimed.data(), &word, sizeof word);
    Value any;
    const bool is_good = decode_value(claimed, &any.value);
    EXPECT_TRUE(!is_good || any.value.type == word) << type;
  }
}

TEST(Published, InvalidItemsAreLeftOut) {
  const Value value("text", PMIX_STRING);
  const auto process_of = [](std::uint32_t owner) {
    pmix_proc_t process;
    PMIX_LOAD_PROCID(&process, "job7", owner);
    return process;
  };
  LookupResult found({{1, "a", *encode_value(value.value)}, {2, "b", "x"}}, process_of);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_STREQ(found.data()->key, "a");
  EXPECT_STREQ(found.data()->proc.nspace, "job7");
  EXPECT_EQ(found.data()->proc.rank, 1U);
}

}  // namespace
}  // namespace score::pmix
