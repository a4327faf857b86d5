#include "scored/job/checkpoint/socket_images.hpp"

#include "base/errc.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace score::shepherd {
namespace {

// Bytes of criu's messages, written by hand: field << 3 | wire type, then the value.
std::string entry(const std::string& message) {
  const auto length = static_cast<std::uint32_t>(message.size());
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + message;
}

const std::string kMagics = "MAGICMAG";
// inet_sk_entry: id 5, ino 300, flags 2, fown (2 bytes)
const std::string kSocketMessage = std::string("\x08\x05\x10\xac\x02\x48\x02\x6a\x02zz", 11);
const std::string kSocketEntry = std::string("\x08\x04\x10\x05\x22\x0b", 6) + kSocketMessage;
const std::string kOtherEntry = std::string("\x08\x01\x10\x06\x1a\x01x", 7);
const std::vector<std::uint64_t> kInodes{7, 300};

TEST(SocketImages, SocketOfPmBecomesFile) {
  std::set<std::uint64_t> ids;
  const auto files = kMagics + entry(kOtherEntry) + entry(kSocketEntry);
  const auto changed = replace_sockets(files, kInodes, ids);
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(ids, std::set<std::uint64_t>{5});
  const std::string file =
      std::string("\x08\x05\x10\x02\x18\x00\x2a\x02zz\x32\x10/scored-socket-1", 28);
  std::string as_file("\x08\x01\x10\x05\x1a\x1c", 6);
  as_file += file;
  EXPECT_EQ(*changed, kMagics + entry(kOtherEntry) + entry(as_file));
}

TEST(SocketImages, OtherSocketsStay) {
  std::set<std::uint64_t> ids;
  const auto files = kMagics + entry(kSocketEntry);
  EXPECT_EQ(replace_sockets(files, std::vector<std::uint64_t>{8}, ids).value_or(""), files);
  EXPECT_TRUE(ids.empty());
}

TEST(SocketImages, DescriptorsOfTheSocketBecomeFiles) {
  const std::string of_socket("\x08\x05\x10\x00\x18\x04\x20\x09", 8);
  const std::string of_other("\x08\x06\x10\x00\x18\x04\x20\x0a", 8);
  const std::string as_file("\x08\x05\x10\x00\x18\x01\x20\x09", 8);
  EXPECT_EQ(replace_descriptors(kMagics + entry(of_socket) + entry(of_other), {5}).value_or(""),
            kMagics + entry(as_file) + entry(of_other));
}

TEST(SocketImages, DamagedImagesAreRefused) {
  std::set<std::uint64_t> ids;
  const auto files = kMagics + entry(kSocketEntry);
  for (std::size_t length = 0; length < files.size(); ++length) {
    if (length == kMagics.size()) continue;  // an image without entries
    const auto changed = replace_sockets(files.substr(0, length), kInodes, ids);
    ASSERT_FALSE(changed.has_value()) << length;
    EXPECT_TRUE(changed.error().is(base::Errc::Malformed));
  }
  const std::string endless = entry(std::string(20, '\xff'));
  EXPECT_FALSE(replace_sockets(kMagics + endless, kInodes, ids).has_value());
}

TEST(SocketImages, RandomBytesAreNoHarm) {
  std::mt19937 random(7);
  const auto files = kMagics + entry(kSocketEntry) + entry(kOtherEntry);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = files;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    std::set<std::uint64_t> ids;
    std::ignore = replace_sockets(damaged, kInodes, ids);
    std::ignore = replace_descriptors(damaged, {5});
  }
}

}  // namespace
}  // namespace score::shepherd
