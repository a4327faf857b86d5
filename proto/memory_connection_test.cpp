#include "proto/memory_connection.hpp"

#include "base/async/task_group.hpp"
#include "proto/errc.hpp"

#include <gtest/gtest.h>

namespace score::proto {
namespace {

class MemoryConnectionTest : public testing::Test {
 protected:
  void open(ConnectionLimits limits = {}) {
    pair_ = make_memory_pair(io_.get_executor(), "head", "node00", limits);
  }

  base::Result<InFrame> read(const std::shared_ptr<Connection>& from, Role sender) {
    return base::run(io_, from->read(sender));
  }

  asio::io_context io_;
  MemoryPair pair_;
};

TEST_F(MemoryConnectionTest, CarriesFramesBothWays) {
  open();
  EXPECT_EQ(pair_.first->peer(), "node00");
  EXPECT_EQ(pair_.second->peer(), "head");
  ASSERT_TRUE(pair_.first->send(FrameType::StartTasks, "1"));
  ASSERT_TRUE(pair_.first->send_shared(encode_frame(FrameType::KillTasks, "2")));
  ASSERT_TRUE(pair_.second->send(FrameType::Prepared, "3"));
  EXPECT_EQ(read(pair_.second, Role::Head)->payload, "1");
  EXPECT_EQ(read(pair_.second, Role::Head)->payload, "2");
  EXPECT_EQ(read(pair_.first, Role::Node)->payload, "3");
}

TEST_F(MemoryConnectionTest, ReadWaitsForWhatIsSentLater) {
  open();
  asio::post(io_, [this] { pair_.first->send(FrameType::StartTasks, "later"); });
  EXPECT_EQ(read(pair_.second, Role::Head)->payload, "later");
}

TEST_F(MemoryConnectionTest, AsksWhoSendsAsASocketDoes) {
  open();
  pair_.first->send(FrameType::StartTasks, "");
  EXPECT_TRUE(read(pair_.second, Role::Node).error().is(WireErrc::NotAllowed));
  EXPECT_FALSE(pair_.first->send(FrameType::StartTasks, std::string(65, 'x')));
}

TEST_F(MemoryConnectionTest, GivesWhatWasSentBeforeTheEnd) {
  open();
  pair_.first->send(FrameType::StartTasks, "last");
  pair_.first->close();
  EXPECT_EQ(read(pair_.second, Role::Head)->payload, "last");
  EXPECT_TRUE(read(pair_.second, Role::Head).error().is(base::Errc::Closed));
  EXPECT_FALSE(pair_.second->send(FrameType::Prepared, ""));
}

TEST_F(MemoryConnectionTest, ClosesWhenTheOtherSideDoesNotRead) {
  ConnectionLimits limits;
  limits.write_queue_bytes = 100;
  open(limits);
  ASSERT_TRUE(pair_.first->send(FrameType::TaskInput, std::string(200, 'x')));
  EXPECT_EQ(pair_.first->queued_bytes(), 216U);
  EXPECT_FALSE(pair_.first->send(FrameType::TaskInput, "x"));
  EXPECT_FALSE(pair_.first->is_open());
}

TEST_F(MemoryConnectionTest, DrainedWaitsForTheReader) {
  open();
  pair_.first->send(FrameType::StartTasks, "1");
  bool drained = false;
  auto drain = [](std::shared_ptr<Connection> c, bool& done) -> asio::awaitable<void> {
    co_await c->drained(1);
    done = true;
  };
  base::TaskGroup tasks(io_.get_executor(), [](std::string_view, const std::exception_ptr&) {});
  tasks.spawn("drain", drain(pair_.first, drained));
  io_.poll();
  EXPECT_FALSE(drained);
  ASSERT_TRUE(read(pair_.second, Role::Head).has_value());
  io_.restart();
  io_.poll();
  EXPECT_TRUE(drained);
}

TEST_F(MemoryConnectionTest, AnEndThatIsDroppedIsClosed) {
  open();
  pair_.first.reset();
  EXPECT_TRUE(read(pair_.second, Role::Head).error().is(base::Errc::Closed));
}

}  // namespace
}  // namespace score::proto
