// A witness keeps marks that it cannot make. See docs/adr/0111.
#include "scored/head/process/witness_set.hpp"

#include "proto/frames/parse.hpp"
#include "scored/shared/leases/lease_wire.hpp"
#include "tests/support/head/head_fixture.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

HeadConfig config_of(std::vector<std::string> witnesses = {}) {
  HeadConfig config;
  config.nodes = config.configured_nodes = {"n0", "n1", "n2", "n3", "n4", "n5", "n6"};
  config.witnesses = std::move(witnesses);
  return config;
}

const gang::LogMark kMark{Epoch(4), 2, 3, {Epoch(4), 39}, {}};

TEST(WitnessSet, AcceptsItsOwnMarks) {
  const proto::KeyRing ring(proto::random_key());
  const HeadConfig config = config_of({"n1"});
  const WitnessSet set(config, ring);
  gang::LogMark mark = kMark;
  mark.seal = set.seal(mark);
  EXPECT_EQ(set.checked(mark), mark);
}

TEST(WitnessSet, EtcdIsTheOnlyWitness) {
  const proto::KeyRing ring(proto::random_key());
  const HeadConfig without = config_of();
  HeadConfig config = without;
  config.lease.etcd = {{"e0", 2379}, {"e1", 2379}, {"e2", 2379}};
  WitnessSet set(config, ring);
  EXPECT_EQ(set.settings({}).witnesses, 1U);
  EXPECT_TRUE(set.settings({}).notes_changes);
  EXPECT_FALSE(set.vote_of(set.place_of("n0")));
  const WitnessSet nodes(without, ring);
  EXPECT_NE(set.digest(), nodes.digest());
  config.lease.etcd.pop_back();
  EXPECT_EQ(set.digest(), WitnessSet(config, ring).digest());
  config.lease.prefix = "/other";
  EXPECT_NE(set.digest(), WitnessSet(config, ring).digest());
  gang::LogMark mark = kMark;
  mark.seal = nodes.seal(mark);
  EXPECT_EQ(set.checked(mark), gang::LogMark()) << "a mark of other witnesses";
}

// With a mark of a far term one witness would stop every election, or let a head lead that lacks
// changes.
TEST(WitnessSet, DropsMarksThatAWitnessMade) {
  const proto::KeyRing ring(proto::random_key());
  const HeadConfig config = config_of({"n1", "n2", "n3"});
  const WitnessSet set(config, ring);
  gang::LogMark far = kMark;
  far.term = Epoch(std::uint64_t{1} << 59U);
  for (const std::uint32_t heads : {0U, 3U}) {
    far.heads = heads;
    EXPECT_EQ(set.checked(far), gang::LogMark());
    far.seal = set.seal(kMark);
    EXPECT_EQ(set.checked(far), gang::LogMark()) << "the seal of a different mark";
  }
  gang::LogMark mark = kMark;
  mark.seal = set.seal(mark);
  for (const auto change :
       {+[](gang::LogMark& m) { m.term = Epoch(5); }, +[](gang::LogMark& m) { ++m.version; },
        +[](gang::LogMark& m) { m.heads = 1; },
        +[](gang::LogMark& m) { m.position.term = Epoch(3); },
        +[](gang::LogMark& m) { --m.position.sequence; }, +[](gang::LogMark& m) { ++m.seal.high; },
        +[](gang::LogMark& m) { ++m.seal.low; }}) {
    gang::LogMark changed = mark;
    change(changed);
    EXPECT_EQ(set.checked(changed), gang::LogMark());
  }
}

TEST(WitnessSet, DropsMarksOfOtherWitnessesAndClusters) {
  const proto::Key key = proto::random_key();
  const proto::KeyRing ring(key);
  const HeadConfig one = config_of({"n1"});
  const HeadConfig three = config_of({"n1", "n2", "n3"});
  const HeadConfig all = config_of();
  const WitnessSet set(one, ring);
  gang::LogMark mark = kMark;
  for (const HeadConfig* other : {&three, &all}) {
    mark.seal = WitnessSet(*other, ring).seal(mark);
    EXPECT_EQ(set.checked(mark), gang::LogMark());
  }
  const proto::KeyRing stranger(proto::derive_node_key(key, "n1"));
  mark.seal = WitnessSet(one, stranger).seal(mark);
  EXPECT_EQ(set.checked(mark), gang::LogMark()) << "made with the key of a node";
}

TEST(WitnessSet, MarksSurviveARotationOfKeys) {
  proto::KeyRing ring(proto::random_key());
  const HeadConfig config = config_of();
  gang::LogMark mark = kMark;
  mark.seal = WitnessSet(config, ring).seal(mark);
  ASSERT_TRUE(ring.rotate(5));
  EXPECT_EQ(WitnessSet(config, ring).checked(mark), mark);
  ring.retire();
  EXPECT_EQ(WitnessSet(config, ring).checked(mark), gang::LogMark());
}

TEST(WitnessSet, OnlyNamedNodesHaveAVote) {
  const proto::KeyRing ring(proto::random_key());
  const HeadConfig all = config_of();
  const HeadConfig named = config_of({"n5", "n2", "n3"});
  const HeadConfig five = config_of({"n0", "n1", "n2", "n3", "n4"});
  EXPECT_EQ(WitnessSet(all, ring).vote_of(6), 6U);
  const WitnessSet set(named, ring);
  EXPECT_EQ(set.vote_of(5), 0U);
  EXPECT_EQ(set.vote_of(2), 1U);
  EXPECT_FALSE(set.vote_of(0));
  EXPECT_EQ(set.settings({}).witnesses, 3U);
  EXPECT_EQ(set.settings({}).liars, 0U);
  EXPECT_TRUE(set.settings({}).notes_changes);
  EXPECT_EQ(WitnessSet(five, ring).settings({}).liars, 1U);
  EXPECT_FALSE(WitnessSet(all, ring).settings({}).notes_changes) << "seven are too many to ask";
  EXPECT_NE(WitnessSet(all, ring).digest(), set.digest());
}

TEST(WitnessSet, NotesGoToWitnessesOnly) {
  const proto::KeyRing ring(proto::random_key());
  const HeadConfig config = config_of({"n1"});
  WitnessSet set(config, ring);
  const auto node = std::make_shared<FakeConnection>("n0");
  const auto witness = std::make_shared<FakeConnection>("n1");
  set.connected(0, node);
  set.connected(1, witness);
  gang::LeaseRequest request;
  request.mark = kMark;
  set.send(request, true);
  EXPECT_TRUE(node->all<wire::LeaseRequest>().empty());
  ASSERT_EQ(witness->all<wire::LeaseRequest>().size(), 1U);
  const auto sent = proto::from_wire(witness->all<wire::LeaseRequest>()[0]);
  ASSERT_TRUE(sent);
  EXPECT_EQ(set.checked(sent->mark).position, kMark.position);
  set.send(request, false);
  EXPECT_EQ(node->all<wire::LeaseRequest>().size(), 1U) << "it shows which head is in charge";
}

}  // namespace
}  // namespace score::head
