// Each test is a packet script for one row of the repair table in docs/reference/pm.md that the
// engine decides. CMake compiles this file again for each repair that can be switched off, with
// SCORE_PM_WITHOUT naming its switch. The script of that row must fail there (tests
// pm_script.without_*).
#include "pmlib/core/engine.hpp"

#include <gtest/gtest.h>

namespace score::pm {
namespace {

#ifdef SCORE_PM_WITHOUT
struct TestRules : Rules {
  static constexpr bool SCORE_PM_WITHOUT = false;
};
#else
using TestRules = Rules;
#endif

using E = Engine<TestRules>;
using Ctl = Control<std::uint32_t>;

class EngineTest : public testing::Test {
 protected:
  void queue_and_send(std::uint32_t frames) {
    E::on_app_queue(s, frames);
    send_all();
  }

  std::uint32_t send_all() {
    std::uint32_t count = 0;
    for (; engine.may_send(s); ++count) engine.on_app_send(s, now);
    return count;
  }

  bool obey(ControlKind kind, std::uint32_t number, std::uint16_t count = 0,
            std::uint16_t credit = 0) {
    return engine.on_packet_control(s, Ctl{kind, number, count, credit}, now);
  }

  TimerAction time_out() { return engine.on_timer(s, now = s.deadline); }

  Arrival arrive(std::uint32_t seq, bool room = true) {
    last = engine.on_packet_data(r, seq, room);
    return last.arrival;
  }

  E engine{EngineLimits{.window = 4}};
  E::Send s = engine.fresh_sender();
  E::Receive r = engine.fresh_receiver();
  ArrivalResult<std::uint32_t> last;
  Microseconds now = 1000;
};

TEST_F(EngineTest, G1TimeOutResendsTheOldestMessage) {
  queue_and_send(2);
  EXPECT_EQ(time_out(), TimerAction::GoBack);
  EXPECT_EQ(engine.on_app_send(s, now), 1u);
}

TEST_F(EngineTest, TimerFiresOnlyAtDeadlineForUnackedFrames) {
  queue_and_send(2);
  EXPECT_EQ(engine.on_timer(s, s.deadline - 1), TimerAction::None);
  EXPECT_TRUE(obey(ControlKind::Ack, 2));
  EXPECT_EQ(engine.on_timer(s, now + 10'000'000), TimerAction::None);
}

TEST_F(EngineTest, G2G3LoseOfAckedNumberGoesBack) {
  queue_and_send(3);
  EXPECT_TRUE(obey(ControlKind::Ack, 1));
  EXPECT_TRUE(obey(ControlKind::Lose, 1));
  EXPECT_EQ(engine.on_app_send(s, now), 2u);
}

TEST_F(EngineTest, G4StopKeepsTheRefusedMessage) {
  queue_and_send(3);
  EXPECT_TRUE(obey(ControlKind::Stop, 2, 1));
  EXPECT_EQ(s.acked, 1u);
  EXPECT_TRUE(obey(ControlKind::Go, 2, 2));
  EXPECT_EQ(engine.on_app_send(s, now), 2u);
}

TEST_F(EngineTest, G6WindowOfNAllowsNFrames) {
  queue_and_send(9);
  EXPECT_EQ(s.sent, 4u);
  EXPECT_TRUE(obey(ControlKind::Ack, 1));
  EXPECT_EQ(send_all(), 1u);
  E one{EngineLimits{.window = 1}};
  E::Send single = one.fresh_sender();
  E::on_app_queue(single, 2);
  EXPECT_TRUE(one.may_send(single));
}

TEST_F(EngineTest, G7DuplicatesAreAnswered) {
  arrive(1);
  E::on_app_ack(r);
  EXPECT_EQ(arrive(1), Arrival::Duplicate);
  EXPECT_TRUE(r.has(E::Receive::kAckOwed));
  EXPECT_EQ(E::on_app_ack(r).number, 1u);
}

TEST_F(EngineTest, G8AckBeyondSentMovesSentForward) {
  queue_and_send(4);
  time_out();
  EXPECT_EQ(s.sent, 0u);
  EXPECT_TRUE(obey(ControlKind::Ack, 3));
  EXPECT_EQ(s.sent, 3u);
  EXPECT_EQ(engine.on_app_send(s, now), 4u);
}

TEST_F(EngineTest, G9G11StoppedSenderProbesAndGetsAnswers) {
  queue_and_send(2);
  EXPECT_TRUE(obey(ControlKind::Stop, 1, 1));
  EXPECT_EQ(time_out(), TimerAction::Probe);
  EXPECT_EQ(time_out(), TimerAction::Probe);
  arrive(1, false);
  const auto first = last.reply;
  EXPECT_EQ(arrive(1, false), Arrival::Refused);
  EXPECT_EQ(last.reply.kind, ControlKind::Stop);
  EXPECT_EQ(last.reply.count, first.count);
}

TEST_F(EngineTest, G10AckOfProbeLiftsStop) {
  queue_and_send(2);
  obey(ControlKind::Stop, 1, 1);
  EXPECT_TRUE(obey(ControlKind::Ack, 1));
  EXPECT_TRUE(engine.may_send(s));
  EXPECT_EQ(engine.on_app_send(s, now), 2u);
}

TEST_F(EngineTest, G12StaleStopDoesNotStopSender) {
  queue_and_send(3);
  EXPECT_TRUE(obey(ControlKind::Go, 2, 2));
  EXPECT_FALSE(obey(ControlKind::Stop, 2, 1));
  EXPECT_TRUE(engine.may_send(s));
}

TEST_F(EngineTest, G12CountsWrap) {
  s.flow_count = 0xfffe;
  queue_and_send(3);
  EXPECT_TRUE(obey(ControlKind::Stop, 2, 0xffff));
  EXPECT_TRUE(obey(ControlKind::Go, 2, 0));
  EXPECT_FALSE(obey(ControlKind::Stop, 2, 0xffff));
}

TEST_F(EngineTest, G13StoppedSenderSendsNothingNew) {
  queue_and_send(2);
  obey(ControlKind::Stop, 1, 1);
  E::on_app_queue(s, 1);
  EXPECT_FALSE(engine.may_send(s));
  EXPECT_EQ(engine.sendable(s), 0u);
}

TEST_F(EngineTest, G14GapIsReportedAndObeyedOnce) {
  EXPECT_EQ(arrive(2), Arrival::Early);
  EXPECT_EQ(last.reply.kind, ControlKind::Lose);
  EXPECT_EQ(last.reply.number, 0u);
  arrive(3);
  EXPECT_EQ(last.reply.kind, ControlKind::None);
  queue_and_send(3);
  EXPECT_TRUE(obey(ControlKind::Lose, 0));
  send_all();
  EXPECT_FALSE(obey(ControlKind::Lose, 0));
  EXPECT_EQ(s.sent, 3u);
}

TEST_F(EngineTest, G15AckOfUnsentFrameIsIgnored) {
  queue_and_send(2);
  for (const auto kind :
       {ControlKind::Ack, ControlKind::Lose, ControlKind::Stop, ControlKind::Go}) {
    const auto before = s;
    EXPECT_FALSE(obey(kind, 4, 1));
    EXPECT_FALSE(obey(kind, 0x80000000, 1));
    EXPECT_EQ(s, before);
  }
}

TEST_F(EngineTest, G16OnlyStoredFramesAreAcknowledged) {
  EXPECT_EQ(arrive(1, false), Arrival::Refused);
  EXPECT_FALSE(r.has(E::Receive::kAckOwed));
  EXPECT_EQ(r.recv, 0u);
}

TEST_F(EngineTest, G17PromisedBufferIsKeptForRefusedSender) {
  SharedRoom room{.capacity = 1};
  E::Receive other = engine.fresh_receiver();
  room.take(other);
  arrive(1, room.has_room_for(r));
  room.release();
  room.promise(r);
  EXPECT_FALSE(room.has_room_for(other));
  EXPECT_TRUE(room.has_room_for(r));
  room.take(r);
  EXPECT_EQ(room.promised, 0u);
  EXPECT_EQ(room.used, 1u);
}

TEST_F(EngineTest, G18FramesBehindRefusedFrameAreNotLost) {
  arrive(1, false);
  EXPECT_EQ(arrive(2), Arrival::Early);
  EXPECT_EQ(last.reply.kind, ControlKind::None);
}

TEST_F(EngineTest, G19NumbersWrap) {
  s = engine.fresh_sender(0xfffffffe);
  r = engine.fresh_receiver(0xfffffffe);
  queue_and_send(4);
  EXPECT_EQ(s.sent, 2u);
  for (const std::uint32_t seq : {0xffffffffu, 0u, 1u}) EXPECT_EQ(arrive(seq), Arrival::Store);
  EXPECT_TRUE(obey(ControlKind::Ack, E::on_app_ack(r).number));
  EXPECT_EQ(s.acked, 1u);
  EXPECT_EQ(arrive(0xffffffff), Arrival::Duplicate);
}

TEST_F(EngineTest, G19NumbersOutsideEveryWindowAreStrange) {
  r = engine.fresh_receiver(100);
  EXPECT_EQ(arrive(105), Arrival::Strange);
  EXPECT_EQ(arrive(96), Arrival::Strange);
  EXPECT_EQ(arrive(97), Arrival::Duplicate);
  EXPECT_EQ(arrive(104), Arrival::Early);
}

TEST_F(EngineTest, G21TimeoutBacksOffAndHalvesWindow) {
  queue_and_send(4);
  const Microseconds first = engine.timeout_of(s);
  time_out();
  EXPECT_EQ(engine.timeout_of(s), 2 * first);
  EXPECT_EQ(send_all(), 2u);
  for (int i = 0; i < 40; ++i) time_out();
  EXPECT_EQ(engine.timeout_of(s), engine.limits().rto_max);
  EXPECT_EQ(send_all(), 1u);
  obey(ControlKind::Ack, 1);
  EXPECT_EQ(s.backoff, 0u);
  EXPECT_EQ(s.silent, 0u);
}

TEST_F(EngineTest, AnsweredProbeBacksOffWithoutCountingSilence) {
  queue_and_send(1);
  obey(ControlKind::Stop, 1, 1);
  time_out();
  E::on_sign_of_life(s);
  time_out();
  EXPECT_EQ(s.silent, 1u);
  EXPECT_EQ(s.backoff, 2u);
}

TEST_F(EngineTest, G21TimeoutFollowsRoundTripDownToMinimum) {
  queue_and_send(1);
  now += 20'000;
  obey(ControlKind::Ack, 1);
  EXPECT_GE(engine.timeout_of(s), 40'000u);
  for (int i = 0; i < 60; ++i) {
    queue_and_send(1);
    now += 10;
    obey(ControlKind::Ack, s.max_sent);
  }
  EXPECT_EQ(engine.timeout_of(s), engine.limits().rto_min);
}

TEST_F(EngineTest, G21FramesSentTwiceAreNotMeasured) {
  queue_and_send(1);
  now += 300;
  obey(ControlKind::Ack, 1);
  EXPECT_EQ(s.srtt, 301u);
  queue_and_send(1);
  time_out();
  send_all();
  now += 500'000;
  obey(ControlKind::Ack, 2);
  EXPECT_EQ(s.srtt, 301u);
}

// A rank that shares its processor answers only in its turn, so round trips grow from microseconds
// to milliseconds.
TEST_F(EngineTest, G21LongerRoundTripsAreLearnt) {
  for (int i = 0; i < 20; ++i) {
    queue_and_send(1);
    now += 50;
    obey(ControlKind::Ack, s.max_sent);
  }
  ASSERT_EQ(engine.timeout_of(s), engine.limits().rto_min);
  const auto round_trip = [&](Microseconds takes) {
    queue_and_send(1);
    const Microseconds end = now + takes;
    int time_outs = 0;
    while (E::minus(end, s.deadline) < 0x80000000) {
      time_out();
      send_all();
      ++time_outs;
    }
    now = end;
    obey(ControlKind::Ack, s.max_sent);
    return time_outs;
  };
  EXPECT_EQ(round_trip(20'000), 4);
  EXPECT_EQ(s.backoff, 4u) << "nothing was measured";
  EXPECT_EQ(round_trip(20'000), 1);
  EXPECT_EQ(round_trip(20'000), 0);
  EXPECT_EQ(s.backoff, 0u);
  EXPECT_EQ(s.srtt, engine.limits().rto_kept / 4 + 1) << "as if it had been known";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(round_trip(20'000), 0);
}

TEST_F(EngineTest, G21LongTimeoutIsNotKeptAfterProgress) {
  for (int i = 0; i < 2; ++i) queue_and_send(1);
  obey(ControlKind::Ack, 1);
  for (int i = 0; i < 15; ++i) time_out();
  EXPECT_EQ(engine.timeout_of(s), engine.limits().rto_max);
  send_all();
  now += 500'000;
  obey(ControlKind::Ack, 2);
  EXPECT_GT(s.backoff, 0u);
  EXPECT_LE(engine.timeout_of(s), engine.limits().rto_kept);
}

TEST_F(EngineTest, G21QuickAnswerToResendResetsBackoff) {
  queue_and_send(1);
  now += 300;
  obey(ControlKind::Ack, 1);
  const Microseconds usual = engine.timeout_of(s);
  for (const Microseconds takes : {Microseconds{300}, usual}) {
    queue_and_send(1);
    for (int i = 0; i < 5; ++i) time_out();
    send_all();
    now += takes;
    obey(ControlKind::Ack, s.max_sent);
    EXPECT_EQ(engine.timeout_of(s), usual) << takes;
  }
  queue_and_send(2);
  for (int i = 0; i < 4; ++i) time_out();
  send_all();
  now += usual + 1;
  obey(ControlKind::Ack, s.max_sent - 1);
  EXPECT_EQ(s.backoff, 4u) << "may be the answer to what was sent first";
  obey(ControlKind::Ack, s.max_sent);
  EXPECT_EQ(s.backoff, 4u) << "only the first progress after a timeout counts";
}

TEST_F(EngineTest, G21AnswerAfterJobStopKeepsBackoff) {
  queue_and_send(1);
  time_out();
  time_out();
  send_all();
  E::on_resume(s, now, 100);
  obey(ControlKind::Ack, 1);
  EXPECT_EQ(s.backoff, 2u);
}

TEST_F(EngineTest, G21EverySecondTimeoutDoublesBeyondKeptLimit) {
  queue_and_send(1);
  const Microseconds kept = engine.limits().rto_kept;
  while (engine.timeout_of(s) < kept) {
    const Microseconds before = engine.timeout_of(s);
    time_out();
    EXPECT_EQ(engine.timeout_of(s), 2 * before);
  }
  const Microseconds first = engine.timeout_of(s);
  for (const Microseconds factor : {1u, 2u, 2u, 4u, 4u, 8u}) {
    time_out();
    EXPECT_EQ(engine.timeout_of(s), factor * first);
  }
}

TEST_F(EngineTest, G21TimeoutIsNotKeptOnLossyPath) {
  for (int i = 0; i < 4; ++i) queue_and_send(1);
  engine.on_heavy_loss(s);
  time_out();
  time_out();
  send_all();
  obey(ControlKind::Ack, 1);
  EXPECT_EQ(s.backoff, 0u);
}

TEST_F(EngineTest, G21GoResetsBackoffOfProbes) {
  queue_and_send(1);
  obey(ControlKind::Stop, 1, 1);
  for (int i = 0; i < 8; ++i) time_out();
  EXPECT_EQ(s.backoff, 8u);
  obey(ControlKind::Go, 1, 2);
  EXPECT_EQ(s.backoff, 0u);
}

TEST_F(EngineTest, G21RoundTripAboveInitialTimeoutIsMeasured) {
  queue_and_send(1);
  time_out();
  send_all();
  now += 2'000;
  obey(ControlKind::Ack, 1);
  EXPECT_EQ(s.srtt, 7'001u) << "since it was sent first";
  EXPECT_EQ(engine.timeout_of(s), 28'004u);
}

TEST_F(EngineTest, G21FirstMeasureOfLatePeerIsLimited) {
  queue_and_send(1);
  time_out();
  send_all();
  now += 500'000;
  obey(ControlKind::Ack, 1);
  EXPECT_EQ(s.srtt, 20'001u);
}

TEST_F(EngineTest, G22TimersRestartWithJitterAfterStop) {
  queue_and_send(1);
  const Microseconds due = s.deadline;
  E::on_resume(s, due + 50, 300);
  EXPECT_EQ(s.deadline, due + 350);
  E::on_resume(s, due, 10);
  EXPECT_EQ(s.deadline, due + 360);
}

TEST_F(EngineTest, GoLimitsWindowToCredit) {
  queue_and_send(4);
  obey(ControlKind::Stop, 1, 1);
  EXPECT_TRUE(obey(ControlKind::Go, 1, 2, 2));
  EXPECT_EQ(send_all(), 2u);
}

}  // namespace
}  // namespace score::pm
