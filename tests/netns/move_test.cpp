// A running conversation is saved, its processes end, and new processes on different nodes continue
// it.
#include "pmlib/core/segment.hpp"
#include "tests/netns/conversation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace score::pm::netns {
namespace {

// Holds an image in the memory that both processes and the parent share.
class Image {
 public:
  Image(Shared& shared, int rank) : at_(shared.area[rank]) {}

  void save(const Talker& talker) {
    const std::size_t bytes = pm_context_bytes(talker);
    check(bytes + 64 <= sizeof(Shared::area[0]), "the image fits");
    check(pm_save(talker, at_ + 64, bytes), "pm_save");
    const std::size_t sent = talker.progress.sent, received = talker.progress.received;
    const std::size_t head[3] = {bytes, sent, received};
    std::memcpy(at_, head, sizeof head);
  }

  int restore(Talker& talker) const {
    std::size_t head[3];
    std::memcpy(head, at_, sizeof head);
    talker.progress = {static_cast<std::uint32_t>(head[1]), static_cast<std::uint32_t>(head[2])};
    return pm_restore(talker, at_ + 64, head[0]);
  }

  std::uint8_t* bytes() { return at_ + 64; }

 private:
  std::uint8_t* at_;
};

class AMove : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string device = GetParam();
    std::string reason;
    ends_ = make_ends(device != "shmem", reason);
    if (!ends_) GTEST_SKIP() << reason;
  }

  void run(const bench::Side& side) {
    try {
      ends_->run(side);
    } catch (const std::exception& e) {
      FAIL() << e.what();
    }
  }

  std::unique_ptr<TwoEnds> ends_;
};

INSTANTIATE_TEST_SUITE_P(Devices, AMove, testing::Values("shmem", "udp", "ethernet"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST_P(AMove, NoMessageIsLostOrDuplicated) {
  const AddressFile before(*ends_, GetParam());
  run([&](int rank, Shared& shared) {
    Talker talker(before.path(), rank);
    bench::meet(shared, 1);
    // Rank 0 receives some of the messages, and rank 1 receives few. Both stop with full queues,
    // messages received but not read, and frames in flight.
    talker.talk_a_little(rank == 0 ? 300 : 7);
    bench::meet(shared, 2);
    Image(shared, rank).save(talker);
    shared.count[rank] = {talker.progress.sent, talker.progress.received};
    bench::meet(shared, 3);
    talker.abandon();
  });
  ASSERT_FALSE(HasFatalFailure());
  const std::uint64_t sent[] = {ends_->shared().count[0][0], ends_->shared().count[1][0]};
  const std::uint64_t received[] = {ends_->shared().count[0][1], ends_->shared().count[1][1]};
  EXPECT_GT(sent[0], received[1]) << "something was under way";
  // Each rank is now on the other's node, under a different address.
  const AddressFile after(*ends_, GetParam(), true);
  run([&](int side, Shared& shared) {
    const int rank = 1 - side;
    Talker talker(after.path(), rank);
    check(Image(shared, rank).restore(talker), "pm_restore");
    bench::meet(shared, 1);
    talker.talk(static_cast<std::uint32_t>(std::max(sent[0], sent[1])) + 500);
  });
}

// These are changes that an attacker could make to an image.
const std::vector<void (*)(const Segment&)> kSpoils{
    [](const Segment& s) { s.header().magic ^= 1; },
    [](const Segment& s) { s.header().version += 1; },
    [](const Segment& s) { s.header().total_bytes += 4096; },
    [](const Segment& s) { s.header().geometry.send_buffers = 65000; },
    [](const Segment& s) { s.header().rank = 1; },
    [](const Segment& s) { s.header().free_descriptor = 5000; },
    [](const Segment& s) { s.header().free_receive_buffer = 64; },
    [](const Segment& s) { s.header().delivered.head = 60000; },
    [](const Segment& s) { s.header().room.used += 1; },
    [](const Segment& s) { s.peer(1).send.max_sent += 9000; },
    [](const Segment& s) { s.peer(1).head = 127; },
    [](const Segment& s) { s.operation(0).peer = 99; },
    [](const Segment& s) {
      s.region(0) = {~0ull - 5, 100, 1, 1, 0};
    },
};

Segment segment_in(std::uint8_t* image) {
  auto* bytes = reinterpret_cast<std::byte*>(image);
  const Geometry geometry = reinterpret_cast<SegmentHeader*>(image)->geometry;
  return {bytes, geometry, *SegmentLayout::of(geometry)};
}

TEST_P(AMove, HostileImageIsRefusedAndChangesNothing) {
  const AddressFile file(*ends_, GetParam());
  run([&](int rank, Shared& shared) {
    Talker talker(file.path(), rank);
    bench::meet(shared, 1);
    talker.talk_a_little(10);
    bench::meet(shared, 2);
    if (rank == 0) {
      Image image(shared, rank);
      image.save(talker);
      const auto before = talker.progress;
      for (const auto& spoil : kSpoils) {
        image.save(talker);
        spoil(segment_in(image.bytes()));
        check(image.restore(talker) == PM_EINVAL, "a hostile image is refused");
      }
      image.save(talker);
      check(pm_restore(talker, image.bytes(), 4096) == PM_EINVAL, "a shortened image is refused");
      talker.progress = before;
    }
    bench::meet(shared, 3);
    talker.talk(3000);
  });
}

}  // namespace
}  // namespace score::pm::netns
