#include "pario/store/store.hpp"

#include "tests/support/pario/test_directory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace score::pario {
namespace {

std::unique_ptr<Store> open_store(const TestDirectory& directory,
                                  const Store::Identity& identity = {"test", 0, 1, 4096}) {
  std::unique_ptr<Store> store;
  std::string message;
  EXPECT_EQ(Store::open(directory.path(), identity, store, message), 0) << message;
  return store;
}

TEST(Store, HasRootAndCommittedEntries) {
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

TEST(Store, RefusesDirectoryOfOtherServer) {
  const TestDirectory directory;
  open_store(directory);
  std::unique_ptr<Store> store;
  std::string message;
  EXPECT_EQ(Store::open(directory.path(), {"test", 1, 2, 4096}, store, message), EINVAL);
  EXPECT_NE(message.find("test server 0 of 1"), message.npos) << message;
}

// Compares the store with a map: entries of several directories, listed in parts.
TEST(Store, ListsEntriesInMapOrder) {
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

std::vector<std::pair<std::uint32_t, std::string>> dump_of(Store& store) {
  std::vector<std::pair<std::uint32_t, std::string>> batches;
  EXPECT_EQ(store.dump([&](std::uint32_t table, std::string rows) {
    batches.emplace_back(table, std::move(rows));
  }),
            0);
  return batches;
}

TEST(Store, ReplicaIsFilledFromRowsOfOther) {
  const TestDirectory directory;
  const TestDirectory other_directory;
  auto store = open_store(directory);
  FileId id = 0;
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(store->make_id(id), 0);
    ASSERT_EQ(store->put(id, Inode{0100644, 0, i, i}), 0);
    ASSERT_EQ(store->put(kRootId, "a file with a rather long name, number " + std::to_string(i),
                         {id, 0100644}),
              0);
  }
  ASSERT_EQ(store->set_sealed(id, true), 0);
  ASSERT_EQ(store->put_number("view", 7), 0);
  auto other = open_store(other_directory);
  ASSERT_EQ(other->put(kRootId, "old", {5, 0100644}), 0);
  ASSERT_EQ(other->put_number("view", 8), 0);
  ASSERT_EQ(other->clear(), 0);
  const auto batches = dump_of(*store);
  EXPECT_GT(batches.size(), 3U);
  for (const auto& [table, rows] : batches) {
    ASSERT_LE(rows.size(), kMaxDataBytes);
    ASSERT_EQ(other->load(table, rows), 0);
  }
  ASSERT_EQ(other->reload(), 0);
  EXPECT_EQ(dump_of(*other), batches);
  Target target;
  std::uint64_t number = 0;
  bool sealed = false;
  EXPECT_EQ(other->find(kRootId, "old", target), ENOENT);
  EXPECT_EQ(other->get_number("view", number), ENOENT) << "each replica has its own";
  EXPECT_EQ(other->is_sealed(id, sealed), 0);
  EXPECT_TRUE(sealed);
  FileId next = 0;
  ASSERT_EQ(other->make_id(next), 0);
  EXPECT_GT(next, id);
}

TEST(Store, OldAnswersAreForgotten) {
  const TestDirectory directory;
  const TestDirectory other_directory;
  auto store = open_store(directory);
  constexpr std::uint64_t kClients = 1'500;
  for (std::uint64_t client = 1; client <= kClients; ++client) {
    const auto time_ns = static_cast<std::int64_t>(client);
    ASSERT_EQ(store->put_answer({client, 2, 9}, {9, time_ns, 5, std::string(48, 'a')}), 0);
  }
  ASSERT_EQ(store->put_answer({1, 3, 4}, {4, 1, 6, ""}), 0);
  ASSERT_EQ(store->commit(), 0);
  auto other = open_store(other_directory);
  for (const auto& [table, rows] : dump_of(*store)) ASSERT_EQ(other->load(table, rows), 0);
  store.reset();
  store = open_store(directory);
  for (Store* one : {store.get(), other.get()}) {
    Store::Answered answered;
    EXPECT_EQ(one->get_answer({1, 0, 1}, answered), ENOENT);
    ASSERT_EQ(one->get_answer({1, 2, 9}, answered), 0);
    EXPECT_EQ(answered.sequence, 9U);
    EXPECT_EQ(answered.number, 5U);
    EXPECT_EQ(answered.body, std::string(48, 'a'));
  }
  const std::string too_long(sizeof(Attributes) + 1, 'a');
  EXPECT_EQ(store->put_answer({1, 2, 9}, {9, 1, 5, too_long}), EINVAL);
  for (int turn = 0; turn < 4; ++turn) ASSERT_EQ(store->forget_answers(kClients), 0);
  Store::Answered answered;
  EXPECT_EQ(store->get_answer({kClients - 1, 2, 9}, answered), ENOENT);
  EXPECT_EQ(store->get_answer({1, 3, 4}, answered), ENOENT);
  EXPECT_EQ(store->get_answer({kClients, 2, 9}, answered), 0);
}

TEST(Store, ChosenNumberIsNotReused) {
  const TestDirectory directory;
  auto store = open_store(directory);
  const FileId chosen = make_id(9'000, 0);
  ASSERT_EQ(store->take_id(chosen), 0);
  FileId next = 0;
  ASSERT_EQ(store->make_id(next), 0);
  EXPECT_GT(next, chosen);
  ASSERT_EQ(store->commit(), 0);
  store.reset();
  store = open_store(directory);
  ASSERT_EQ(store->make_id(next), 0);
  EXPECT_GT(next, chosen);
}

TEST(Store, KeepsPendingMoves) {
  const TestDirectory directory;
  const std::string longest(255, 'x');
  auto store = open_store(directory);
  ASSERT_EQ(store->put_move({kRootId, longest, 5}), 0);
  ASSERT_EQ(store->put_move({77, "a", 6}), 0);
  ASSERT_EQ(store->set_sealed(77, true), 0);
  ASSERT_EQ(store->commit(), 0);
  store.reset();
  store = open_store(directory);
  std::vector<Store::Move> moves;
  ASSERT_EQ(store->list_moves(moves), 0);
  ASSERT_EQ(moves.size(), 2U);
  for (const Store::Move& move : moves) {
    EXPECT_EQ(move.name, move.parent == 77 ? "a" : longest);
    EXPECT_EQ(move.id, move.parent == 77 ? 6U : 5U);
    ASSERT_EQ(store->remove_move(move), 0);
    ASSERT_EQ(store->remove_move(move), 0);
  }
  moves.clear();
  ASSERT_EQ(store->list_moves(moves), 0);
  EXPECT_TRUE(moves.empty());
}

TEST(Store, DirectoryTimeIsLastChange) {
  const TestDirectory directory;
  auto store = open_store(directory);
  std::int64_t changed = 5;
  ASSERT_EQ(store->get_changed(kRootId, changed), 0);
  EXPECT_EQ(changed, 0);
  ASSERT_EQ(store->put_changed(kRootId, 77), 0);
  ASSERT_EQ(store->get_changed(kRootId, changed), 0);
  EXPECT_EQ(changed, 77);
  ASSERT_EQ(store->remove_changed(kRootId), 0);
  ASSERT_EQ(store->remove_changed(kRootId), 0);
}

TEST(Store, RefusesHostileRows) {
  const TestDirectory directory;
  auto store = open_store(directory);
  FileId id = 0;
  ASSERT_EQ(store->make_id(id), 0);
  ASSERT_EQ(store->put(id, Inode{0100644, 0, 1, 1}), 0);
  ASSERT_EQ(store->put(kRootId, "name", {id, 0100644}), 0);
  ASSERT_EQ(store->put_answer({1, 0, 1}, {1, 1, 1, "body"}), 0);
  ASSERT_EQ(store->store_value(id, "user.name", "value"), 0);
  const auto batches = dump_of(*store);
  std::mt19937 random(3);
  for (const auto& [table, rows] : batches) {
    EXPECT_EQ(store->load(table + 5, rows), EINVAL);
    for (std::size_t length = 1; length < rows.size(); ++length) {
      static_cast<void>(store->load(table, rows.substr(0, length)));
    }
    for (int turn = 0; turn < 2'000; ++turn) {
      std::string bad = rows;
      bad[random() % bad.size()] = static_cast<char>(random());
      static_cast<void>(store->load(table, bad));
    }
  }
  EXPECT_EQ(store->load(2, std::string("\x08\0identity\0\0", 12)), EINVAL);
  std::string entries;
  EXPECT_EQ(store->read_entries(kRootId, "", 1 << 20, entries), 0);
  std::vector<Entry> parsed;
  EXPECT_TRUE(parse_entries(entries, parsed)) << "only names that a client accepts";
}

}  // namespace
}  // namespace score::pario
