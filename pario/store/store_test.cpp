#include "pario/server/store.hpp"

#include "pario/server/test_directory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <random>

namespace score::pario {
namespace {

std::unique_ptr<Store> open_store(const TestDirectory& directory,
                                  const Store::Identity& identity = {"test", 0, 1, 4096}) {
  std::unique_ptr<Store> store;
  std::string message;
  EXPECT_EQ(Store::open(directory.path(), identity, store, message), 0) << message;
  return store;
}

TEST(Store, HasTheRootAndWhatWasCommitted) {
  const TestDirectory directory;
  FileId id = 0;
  {
    auto store = open_store(directory);
    ASSERT_EQ(store->make_id(id), 0);
    ASSERT_EQ(store->put(id, Inode{0100644, 1, 5, 6}), 0);
    ASSERT_EQ(store->put(kRootId, "name", {id, 0100644}), 0);
    ASSERT_EQ(store->commit(), 0);
    ASSERT_EQ(store->remove(kRootId, "name"), 0);  // not committed: as if the process was killed
  }
  auto store = open_store(directory);
  Target target;
  Inode inode;
  ASSERT_EQ(store->find(kRootId, "name", target), 0);
  EXPECT_EQ(target.id, id);
  ASSERT_EQ(store->get(id, inode), 0);
  EXPECT_EQ(inode.wide, 1U);
  EXPECT_EQ(store->get(kRootId, inode), 0);
  FileId next = 0;
  ASSERT_EQ(store->make_id(next), 0);
  EXPECT_GT(next, id);
  EXPECT_EQ(store->count(), 2U);
}

TEST(Store, RefusesTheDirectoryOfAnotherServer) {
  const TestDirectory directory;
  open_store(directory);
  std::unique_ptr<Store> store;
  std::string message;
  EXPECT_EQ(Store::open(directory.path(), {"test", 1, 2, 4096}, store, message), EINVAL);
  EXPECT_NE(message.find("test server 0 of 1"), message.npos) << message;
}

// Against a map: entries of several directories, listed in parts.
TEST(Store, ListsEntriesAsAMapDoes) {
  const TestDirectory directory;
  auto store = open_store(directory);
  std::map<std::pair<FileId, std::string>, FileId> expected;
  std::mt19937 random(1);
  for (int i = 0; i < 2'000; ++i) {
    const FileId parent = kRootId + random() % 3;
    const std::string name = "n" + std::to_string(random() % 300);
    if (random() % 3 == 0) {
      const bool was_there = expected.erase({parent, name}) == 1;
      EXPECT_EQ(store->remove(parent, name), was_there ? 0 : ENOENT);
    } else {
      const FileId id = 1 + random();
      ASSERT_EQ(store->put(parent, name, {id, 0100644}), 0);
      expected[{parent, name}] = id;
    }
    if (i % 100 == 0) {
      ASSERT_EQ(store->commit(), 0);
    }
  }
  std::map<std::pair<FileId, std::string>, FileId> found;
  for (FileId parent = kRootId; parent < kRootId + 3; ++parent) {
    std::string after;
    for (;;) {
      std::string bytes;
      std::vector<Entry> entries;
      ASSERT_EQ(store->read_entries(parent, after, 700, bytes), 0);
      EXPECT_LE(bytes.size(), 700U);
      ASSERT_TRUE(parse_entries(bytes, entries));
      if (entries.empty()) break;
      for (const Entry& entry : entries) found[{parent, entry.name}] = entry.id;
      after = entries.back().name;
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(Store, SealsDirectories) {
  const TestDirectory directory;
  auto store = open_store(directory);
  bool sealed = true;
  EXPECT_EQ(store->is_sealed(77, sealed), 0);
  EXPECT_FALSE(sealed);
  EXPECT_EQ(store->set_sealed(77, true), 0);
  EXPECT_EQ(store->is_sealed(77, sealed), 0);
  EXPECT_TRUE(sealed);
  EXPECT_EQ(store->set_sealed(77, false), 0);
  EXPECT_EQ(store->set_sealed(77, false), 0);
  EXPECT_EQ(store->is_sealed(77, sealed), 0);
  EXPECT_FALSE(sealed);
}

}  // namespace
}  // namespace score::pario
