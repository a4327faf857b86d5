// Fills each table of base/shares.hpp with one user. Others must still find a place, and all users
// together must get no more places than there are.
#include "base/shares.hpp"

#include "gang/resources/node_places.hpp"
#include "gang/resources/row_places.hpp"
#include "monitor/http/web_login.hpp"
#include "monitor/model/hub.hpp"
#include "scored/head/config/user_limits.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/notices/delivery_queue.hpp"
#include "scored/head/streams/kept_outputs.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace score {
namespace {

constexpr UserId kHostile{1001};
constexpr UserId kVictim{1002};
constexpr std::size_t kTooMany = 5;

class Table {
 public:
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  virtual ~Table() = default;

  // Asks for one more place.
  virtual void ask(UserId user) = 0;
  [[nodiscard]] virtual std::size_t held_by(UserId user) = 0;

  // Returns false if the places in all are limited elsewhere.
  [[nodiscard]] virtual bool limits_all() const { return true; }
};

// Counts as LoginRelay, NodePoll, Server and Submissions do; their own tests show that they do.
class Counted : public Table {
 public:
  explicit Counted(Share share) : counter_(share) {}

  void ask(UserId user) override {
    if (counter_.has_place(user)) counter_.take(user);
  }

  std::size_t held_by(UserId user) override { return counter_.taken_by(user); }

 private:
  ShareCounter<UserId> counter_;
};

class NodeTable : public Table {
 public:
  explicit NodeTable(gang::PlaceKind kind) : kind_(kind) {}

  void ask(UserId user) override {
    if (!places_.has_place(user, kind_)) return;
    places_.take(user, kind_);
    ++held_[user];
  }

  std::size_t held_by(UserId user) override { return held_[user]; }

 private:
  gang::PlaceKind kind_;
  gang::NodePlaces places_;
  std::map<UserId, std::size_t> held_;
};

class Rows : public Table {
 public:
  void ask(UserId user) override {
    const gang::RowPlaces::Limits limits{shares::kRows.per_user, 0, 0};
    const gang::RowPlaces::Classes any{true, false, false};
    if (taken_ == shares::kRows.places) return;
    if (!places_.may_take(user, std::nullopt, std::nullopt, any, limits)) return;
    places_.take(user, gang::RowId{++taken_}, any);
    ++held_[user];
  }

  std::size_t held_by(UserId user) override { return held_[user]; }

 private:
  gang::RowPlaces places_;
  std::uint32_t taken_ = 0;
  std::map<UserId, std::size_t> held_;
};

class Jobs : public Table {
 public:
  explicit Jobs(bool are_steps) : are_steps_(are_steps) {}

  void ask(UserId user) override {
    const auto usage = table_.usage_of(user);
    const Status may =
        are_steps_ ? table_.admits_step(user) : check_job_count(head::UserLimits{}, usage.jobs);
    if (!may) return;
    head::JobInfo info;
    info.user = user;
    if (are_steps_) info.step_of = JobId(1);
    table_.count_in(info);
  }

  std::size_t held_by(UserId user) override {
    const auto usage = table_.usage_of(user);
    return are_steps_ ? usage.steps : usage.jobs;
  }

  bool limits_all() const override { return false; }

 private:
  bool are_steps_;
  head::JobTable table_;
};

class KeptOutputTable : public Table {
 public:
  void ask(UserId user) override {
    head::OutputChunk chunk;
    chunk.data = "x";
    outputs_.add(JobId(++jobs_), user, {std::make_shared<const head::OutputChunk>(chunk)});
  }

  std::size_t held_by(UserId user) override { return outputs_.counts().taken_by(user); }

 private:
  std::uint64_t jobs_ = 0;
  head::KeptOutputs outputs_;
};

class Viewers : public Table {
 public:
  explicit Viewers(bool differ) : differ_(differ) {}

  void ask(UserId user) override {
    monitor::ViewerOptions options;
    if (differ_) options.ticks = ++ticks_;
    const auto added =
        hub_.add(fmt::format("{}", user), options, {}, [](const auto&) { return true; });
    if (added) ++held_[user];
  }

  std::size_t held_by(UserId user) override { return held_[user]; }

 private:
  bool differ_;
  std::uint32_t ticks_ = 0;
  monitor::Hub hub_;
  std::map<UserId, std::size_t> held_;
};

class Logins : public Table {
 public:
  explicit Logins(bool are_redeemed) : are_redeemed_(are_redeemed) {}

  void ask(UserId user) override {
    const auto token = login_.offer({user, ""}, now_);
    now_ += 1us;  // the oldest entry makes room
    if (!token) return;
    if (!are_redeemed_) return secrets_[user].push_back(*token);
    const auto session = login_.redeem(*token, now_);
    if (session) secrets_[user].push_back(session->cookie);
  }

  std::size_t held_by(UserId user) override {
    return static_cast<std::size_t>(std::ranges::count_if(secrets_[user], [&](const auto& secret) {
      if (are_redeemed_) return login_.find(secret, now_).has_value();
      monitor::WebLogin copy = login_;
      return copy.redeem(secret, now_).has_value();
    }));
  }

 private:
  bool are_redeemed_;
  TimePoint now_{1h};
  std::uint64_t number_ = 0;
  monitor::WebLogin login_{[this] { return std::to_string(++number_); }};
  std::map<UserId, std::vector<std::string>> secrets_;
};

class NoticeTable : public Table {
 public:
  explicit NoticeTable(Share share) : queue_({share}) {}

  void ask(UserId user) override {
    head::Notice notice;
    notice.user = user;
    queue_.add(std::move(notice), TimePoint());
  }

  std::size_t held_by(UserId user) override { return queue_.size_of(user); }

 private:
  head::DeliveryQueue queue_;
};

using MakeTable = std::function<std::unique_ptr<Table>()>;

template <class Kind, class... Args>
MakeTable maker(Args... args) {
  return [=] { return std::make_unique<Kind>(args...); };
}

std::map<std::string_view, MakeTable> tables() {
  return {
      {shares::kNodeJobs.name, maker<NodeTable>(gang::PlaceKind::Gang)},
      {shares::kNodeSteps.name, maker<NodeTable>(gang::PlaceKind::Step)},
      {shares::kRows.name, maker<Rows>()},
      {shares::kNodeScouts.name, maker<NodeTable>(gang::PlaceKind::Scout)},
      {shares::kJobs.name, maker<Jobs>(false)},
      {shares::kSteps.name, maker<Jobs>(true)},
      {shares::kSubmissions.name, maker<Counted>(shares::kSubmissions)},
      {shares::kClients.name, maker<Counted>(shares::kClients)},
      {shares::kKeptOutputs.name, maker<KeptOutputTable>()},
      {shares::kMails.name, maker<NoticeTable>(shares::kMails)},
      {shares::kWebhookNotices.name, maker<NoticeTable>(shares::kWebhookNotices)},
      {shares::kPolls.name, maker<Counted>(shares::kPolls)},
      {shares::kLogins.name, maker<Counted>(shares::kLogins)},
      {shares::kPersonalTokens.name, maker<Counted>(shares::kPersonalTokens)},
      {shares::kViewers.name, maker<Viewers>(false)},
      {shares::kFilters.name, maker<Viewers>(true)},
      {shares::kWebTokens.name, maker<Logins>(false)},
      {shares::kWebSessions.name, maker<Logins>(true)},
  };
}

std::size_t fill(Table& table, UserId user, const Share& share) {
  for (std::size_t i = 0; i < share.per_user + kTooMany; ++i) table.ask(user);
  return table.held_by(user);
}

class SharesTest : public ::testing::TestWithParam<Share> {
 protected:
  void SetUp() override {
    const auto made = tables();
    const auto found = made.find(GetParam().name);
    ASSERT_NE(found, made.end()) << "add a Table for " << GetParam().name;
    table_ = found->second();
  }

  std::unique_ptr<Table> table_;
};

TEST_P(SharesTest, UserGetsItsShareAndOthersFindPlaces) {
  const Share& share = GetParam();
  EXPECT_LT(share.per_user, share.places);
  EXPECT_EQ(fill(*table_, kHostile, share), share.per_user);
  table_->ask(kVictim);
  EXPECT_EQ(table_->held_by(kVictim), 1U);
  EXPECT_EQ(table_->held_by(kHostile), share.per_user);
}

TEST_P(SharesTest, AllUsersGetNoMoreThanThePlaces) {
  const Share& share = GetParam();
  if (!table_->limits_all()) GTEST_SKIP() << "limited elsewhere";
  std::vector<UserId> users;
  for (std::size_t i = 0; i <= share.places / share.per_user + 1; ++i) {
    users.emplace_back(static_cast<std::uint32_t>(2'000 + i));
    fill(*table_, users.back(), share);
  }
  std::size_t sum = 0;
  for (const UserId user : users) sum += table_->held_by(user);
  EXPECT_EQ(sum, share.places);
}

TEST_P(SharesTest, IsDescribedInLimitsPage) {
  const Share& share = GetParam();
  std::ifstream page(SCORE_SOURCE_DIR "/docs/reference/limits.md");
  const std::string row = fmt::format("| {} | {} | {} |", share.name, share.places, share.per_user);
  bool is_found = false;
  for (std::string line; std::getline(page, line);) {
    std::erase(line, ',');
    is_found |= line.starts_with(row);
  }
  EXPECT_TRUE(is_found) << row;
}

INSTANTIATE_TEST_SUITE_P(, SharesTest, ::testing::ValuesIn(kShares), [](const auto& made) {
  std::string name(made.param.name);
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace score
