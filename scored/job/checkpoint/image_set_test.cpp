#include "scored/job/checkpoint/image_set.hpp"

#include "base/errc.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace score::shepherd {
namespace {

namespace fs = std::filesystem;

NodeImage some_image() {
  NodeImage image;
  image.parent = 4'001;
  image.last = 4'010;
  image.tasks = {4'002, 4'003};
  using What = CriuClient::What;
  image.streams = {{0, 1, {What::Pipe, 77, -1}}, {NodeImage::kOfParent, 0, {What::Socket, 78, -1}}};
  image.network_key = UINT64_MAX;
  image.sockets = {79, 80};
  image.pmi = "pmi kvs FF 0\n";
  image.script = "/tmp/scored-script-7.abc/a job";
  return image;
}

class ImageSetTest : public testing::Test {
 protected:
  ImageSetTest() {
    std::string name = (fs::temp_directory_path() / "image_set.XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }

  ~ImageSetTest() override { fs::remove_all(directory_); }

  // Saves two nodes in a set of this name.
  [[nodiscard]] ImageSet save(const std::string& name) const {
    ImageSet set((directory_ / "job_7" / name).string());
    for (const std::uint32_t node : {0U, 1U}) {
      EXPECT_TRUE(set.make_node(node).has_value());
      std::ofstream(fs::path(set.directory()) / ("node_" + std::to_string(node)) / "pages-1.img")
          << "pages";
      EXPECT_TRUE(set.finish_node(node, some_image()).has_value());
    }
    return set;
  }

  fs::path directory_;
  std::vector<std::uint32_t> two_each_{2, 2};
};

TEST(NodeImage, TextIsReadBack) {
  const auto image = parse_image(image_text(some_image()));
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(image_text(*image), image_text(some_image()));
  EXPECT_EQ(image->script, some_image().script);
  EXPECT_EQ(image->streams[1].stream.what, CriuClient::What::Socket);
  EXPECT_EQ(image->network_key, UINT64_MAX);
  EXPECT_EQ(image->sockets, some_image().sockets);
}

TEST(NodeImage, TextWithoutTasksIsRefused) {
  EXPECT_FALSE(parse_image("").has_value());
  EXPECT_FALSE(parse_image("parent 4001\n").has_value());
  EXPECT_FALSE(parse_image("parent 1\ntask 4002\n").has_value());
  EXPECT_FALSE(parse_image("parent 4001\ntask 4002\nstream 0 x pipe 7\n").has_value());
  EXPECT_FALSE(parse_image("parent\n").has_value());
}

TEST_F(ImageSetTest, CompleteSetIsAccepted) {
  const ImageSet set = save("1");
  ASSERT_TRUE(set.complete(two_each_, "submission").has_value());
  const auto image = set.check_node(1, two_each_);
  ASSERT_TRUE(image.has_value()) << image.error().message();
  EXPECT_EQ(image->parent, 4'001);
}

TEST_F(ImageSetTest, IncompleteSetIsRefused) {
  const auto image = save("1").check_node(0, two_each_);
  ASSERT_FALSE(image.has_value());
  EXPECT_TRUE(image.error().is(Errc::NotFound));
}

TEST_F(ImageSetTest, SetWithoutANodeCannotBeCompleted) {
  const ImageSet set = save("1");
  fs::remove_all(fs::path(set.directory()) / "node_1");
  EXPECT_FALSE(set.complete(two_each_, "").has_value());
}

TEST_F(ImageSetTest, DamagedFileIsRefused) {
  const ImageSet set = save("1");
  ASSERT_TRUE(set.complete(two_each_, "").has_value());
  std::ofstream(fs::path(set.directory()) / "node_1" / "pages-1.img") << "pagEs";
  EXPECT_TRUE(set.check_node(0, two_each_).has_value());
  const auto image = set.check_node(1, two_each_);
  ASSERT_FALSE(image.has_value());
  EXPECT_NE(image.error().message().find("pages-1.img is damaged"), std::string::npos);
}

TEST_F(ImageSetTest, LinkInPlaceOfAnImageIsRefused) {
  const ImageSet set = save("1");
  ASSERT_TRUE(set.complete(two_each_, "").has_value());
  const fs::path image = fs::path(set.directory()) / "node_0" / "pages-1.img";
  fs::rename(image, directory_ / "elsewhere");
  fs::create_symlink(directory_ / "elsewhere", image);
  EXPECT_FALSE(set.check_node(0, two_each_).has_value());
}

TEST_F(ImageSetTest, OtherNumberOfTasksIsRefused) {
  const ImageSet set = save("1");
  ASSERT_TRUE(set.complete(two_each_, "").has_value());
  const auto image = set.check_node(0, std::vector<std::uint32_t>{4});
  ASSERT_FALSE(image.has_value());
  EXPECT_TRUE(image.error().is(Errc::WrongState));
}

TEST_F(ImageSetTest, OlderSetGoesWhenNextIsComplete) {
  const ImageSet first = save("1");
  ASSERT_TRUE(first.complete(two_each_, "").has_value());
  const ImageSet second = save("2");
  EXPECT_TRUE(first.check_node(0, two_each_).has_value());
  ASSERT_TRUE(second.complete(two_each_, "").has_value());
  EXPECT_FALSE(fs::exists(first.directory()));
}

TEST_F(ImageSetTest, AbandonedSetIsRemovedByItsLastNode) {
  const ImageSet set = save("1");
  set.abandon(0);
  EXPECT_TRUE(fs::exists(set.directory()));
  set.abandon(1);
  EXPECT_FALSE(fs::exists(set.directory()));
}

}  // namespace
}  // namespace score::shepherd
