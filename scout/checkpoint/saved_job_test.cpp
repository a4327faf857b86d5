#include "scout/checkpoint/saved_job.hpp"

#include "base/errc.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace score::scout {
namespace {

namespace fs = std::filesystem;

TEST(PlaceAsSaved, EvenTasksAreRequestedPerNode) {
  wire::ResourceRequest resources;
  ASSERT_TRUE(place_as_saved("scored-checkpoint 1\ntasks 4 4\n", resources).has_value());
  EXPECT_EQ(resources.nodes(), 2U);
  EXPECT_EQ(resources.tasks(), 8U);
  EXPECT_EQ(resources.tasks_per_node(), 4U);
}

TEST(PlaceAsSaved, UnevenTasksAreRefused) {
  wire::ResourceRequest resources;
  const auto placed = place_as_saved("tasks 4 3\n", resources);
  ASSERT_FALSE(placed.has_value());
  EXPECT_TRUE(placed.error().is(Errc::Unsupported));
}

TEST(PlaceAsSaved, DamagedMarkIsRefused) {
  wire::ResourceRequest resources;
  for (const auto* text : {"", "tasks \n", "tasks x\n", "tasks 4294967296\n"}) {
    EXPECT_FALSE(place_as_saved(text, resources).has_value()) << text;
  }
}

TEST(FindSet, NewestCompleteSetOfAJobIsChosen) {
  std::string name = (fs::temp_directory_path() / "find_set.XXXXXX").string();
  const fs::path images = mkdtemp(name.data());
  for (const auto* set : {"1", "2", "3"}) fs::create_directories(images / "job_7" / set);
  for (const auto* set : {"1", "2"})
    std::ofstream(images / "job_7" / set / "complete") << "tasks 1\n";
  EXPECT_EQ(find_set("7", images).value_or(""), images / "job_7" / "2");
  EXPECT_EQ(find_set(images / "job_7" / "1", "").value_or(""), images / "job_7" / "1");
  EXPECT_FALSE(find_set("8", images).has_value());
  EXPECT_FALSE(find_set(images / "job_7" / "3", "").has_value());
  fs::remove_all(images);
}

}  // namespace
}  // namespace score::scout
