// Tests the life of personal tokens: made, found, expired, revoked, and kept over a restart.
#include "scored/head/api/personal_tokens.hpp"

#include "base/os/fd.hpp"
#include "base/shares.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

namespace score::head {
namespace {

constexpr WallTime kIssued{std::chrono::seconds(1'800'000'000)};

class PersonalTokensTest : public testing::Test {
 protected:
  PersonalTokensTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "score_token_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    start();
  }

  ~PersonalTokensTest() override {
    tokens_.reset();
    commits_.reset();
    std::filesystem::remove_all(directory_);
  }

  void start() {
    tokens_.reset();
    commits_.reset();
    auto store = Store::open(directory_);
    ASSERT_TRUE(store) << store.error().message();
    commits_.emplace(io_, *std::move(store));
    tokens_.emplace(*commits_, directory_);
  }

  Result<wire::TokenList> execute(std::uint32_t user, const wire::ManageTokens& command) {
    std::optional<Result<wire::TokenList>> listed;
    const Peer peer{UserId(user), proto::Role::OtherUser, "alice"};
    tokens_->execute(peer, command, kIssued, [&](const auto& done) {
      listed = done ? Result<wire::TokenList>(done->value) : Result<wire::TokenList>(done.error());
    });
    io_.restart();
    const auto work = asio::require(io_.get_executor(), asio::execution::outstanding_work.tracked);
    while (!listed) io_.run_one();
    return *listed;
  }

  Result<wire::TokenList> make(std::uint32_t user, std::string name, bool only_reads = false) {
    wire::ManageTokens command;
    command.set_what(wire::ManageTokens::NEW);
    command.set_name(std::move(name));
    command.set_lifetime_ns(Duration(1h).count());
    command.set_only_reads(only_reads);
    return execute(user, command);
  }

  Result<wire::TokenList> revoke(std::uint32_t user, std::uint64_t token) {
    wire::ManageTokens command;
    command.set_what(wire::ManageTokens::REVOKE);
    command.set_token(token);
    return execute(user, command);
  }

  asio::io_context io_;
  std::string directory_;
  std::optional<CommitLog> commits_;
  std::optional<PersonalTokens> tokens_;
};

TEST_F(PersonalTokensTest, TokenIsItsUsersUntilItExpires) {
  const std::string secret = make(1000, "notebook", true).value().secret();
  const PersonalToken* found = tokens_->find(secret, kIssued);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->user, UserId(1000));
  EXPECT_TRUE(found->only_reads);
  EXPECT_EQ(tokens_->find(secret, kIssued + 1h), nullptr);
}

TEST_F(PersonalTokensTest, SecretIsStoredNowhere) {
  const std::string secret = make(1000, "notebook").value().secret();
  const auto stored = read_file(directory_ + "/personal-tokens", 65'536).value();
  EXPECT_EQ(stored.find(secret.substr(secret.rfind('_') + 1)), std::string::npos);
  EXPECT_TRUE(execute(1000, {}).value().secret().empty());
}

TEST_F(PersonalTokensTest, SurvivesARestart) {
  const std::string secret = make(1000, "a").value().secret();
  start();
  EXPECT_NE(tokens_->find(secret, kIssued), nullptr);
  ASSERT_TRUE(revoke(1000, 1));
  start();
  EXPECT_EQ(tokens_->find(secret, kIssued), nullptr);
}

TEST_F(PersonalTokensTest, OnlyItsOwnerRevokesIt) {
  const std::string secret = make(1000, "a").value().secret();
  EXPECT_TRUE(revoke(1001, 1).error().is(Errc::NotFound));
  EXPECT_NE(tokens_->find(secret, kIssued), nullptr);
  EXPECT_TRUE(execute(1001, {}).value().tokens().empty());
  EXPECT_TRUE(revoke(1000, 1).value().tokens().empty());
  EXPECT_EQ(tokens_->find(secret, kIssued), nullptr);
}

TEST_F(PersonalTokensTest, NamesLivesAndNumbersAreBounded) {
  for (const char* bad : {"", "a b", "A", "a\n1 0 9000000000 w", "\xff"}) {
    EXPECT_TRUE(make(1000, bad).error().is(Errc::Malformed)) << bad;
  }
  wire::ManageTokens command;
  command.set_what(wire::ManageTokens::NEW);
  command.set_name("a");
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{0}, INT64_MAX}) {
    command.set_lifetime_ns(bad);
    EXPECT_TRUE(execute(1000, command).error().is(Errc::Malformed));
  }
  for (std::size_t i = 0; i < shares::kPersonalTokens.per_user; ++i) ASSERT_TRUE(make(1000, "a"));
  EXPECT_TRUE(make(1000, "a").error().is(Errc::Busy));
  EXPECT_TRUE(make(1001, "a"));
}

TEST_F(PersonalTokensTest, AnyTextIsRefused) {
  const std::string secret = make(1000, "a").value().secret();
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = secret;
    text[random() % text.size()] ^= static_cast<char>(1U << random() % 8);
    if (i % 2 == 0) text.resize(random() % text.size());
    EXPECT_EQ(tokens_->find(text, kIssued), nullptr) << text;
  }
}

}  // namespace
}  // namespace score::head
