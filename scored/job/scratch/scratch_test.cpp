// These tests create directories of this user in a temporary place, without mounts.
#include "scored/job/scratch/statistics.hpp"
#include "scored/job/scratch/volume_directory.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <array>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::shepherd {
namespace {

namespace fs = std::filesystem;

class VolumeDirectories : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "scored-volume-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    place_ = name;
  }

  void TearDown() override { fs::remove_all(place_); }

  [[nodiscard]] fs::path own() const { return fs::path(place_) / std::to_string(getuid()); }

  std::string place_;
};

constexpr VolumeDirectory::Part kPart{base::AttemptId{7 * 256 + 1}, 2};

TEST_F(VolumeDirectories, ArePrivateAndRemovedWithContents) {
  auto made = VolumeDirectory::make(place_, kPart);
  ASSERT_TRUE(made) << made.error().message();

  struct stat status {};

  for (const fs::path& path : {own(), own() / "1793.2", fs::path(made->data())}) {
    ASSERT_EQ(stat(path.c_str(), &status), 0) << path;
    EXPECT_EQ(status.st_mode & 07777U, 0700U) << path;
  }
  fs::create_directories(fs::path(made->data()) / "data/00");
  std::ofstream(fs::path(made->data()) / "data/00/1") << "much";
  ASSERT_TRUE(made->remove());
  EXPECT_FALSE(fs::exists(own() / "1793.2"));
}

TEST_F(VolumeDirectories, ReplaceLeftoversOfEarlierShepherd) {
  fs::create_directories(own() / "1793.2/data");
  fs::permissions(own(), fs::perms(0700));
  fs::permissions(own() / "1793.2", fs::perms(0700));
  std::ofstream(own() / "1793.2/data/old") << "old";
  auto made = VolumeDirectory::make(place_, kPart);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_TRUE(fs::is_empty(made->data()));
}

TEST_F(VolumeDirectories, AreNotAssignedTwice) {
  auto made = VolumeDirectory::make(place_, kPart);
  ASSERT_TRUE(made);
  EXPECT_FALSE(VolumeDirectory::make(place_, kPart));
}

TEST_F(VolumeDirectories, AreRefusedIfAccessibleToOthers) {
  fs::create_directory(own());
  fs::permissions(own(), fs::perms(0755));
  EXPECT_FALSE(VolumeDirectory::make(place_, kPart));
  fs::remove(own());
  const fs::path other = fs::path(place_) / "other";
  fs::create_directory(other);
  fs::permissions(other, fs::perms(0700));
  fs::create_directory_symlink(other, own());
  EXPECT_FALSE(VolumeDirectory::make(place_, kPart));
  EXPECT_TRUE(fs::is_empty(other));
  EXPECT_FALSE(VolumeDirectory::make(place_ + "/none", kPart));
}

TEST_F(VolumeDirectories, LeftoversOfDeadShepherdsAreRemoved) {
  auto alive = VolumeDirectory::make(place_, kPart);
  ASSERT_TRUE(alive);
  fs::create_directories(own() / "2049.0/data");
  fs::permissions(own() / "2049.0", fs::perms(0700));
  fs::create_directory(own() / "mine");
  const fs::path elsewhere = fs::path(place_) / "elsewhere";
  fs::create_directory(elsewhere);
  std::ofstream(elsewhere / "kept") << "kept";
  fs::create_directory_symlink(elsewhere, own() / "2049.0/data/link");
  fs::create_directory_symlink(elsewhere, own() / "3000.1");
  const SweepResult swept = sweep_volumes(place_);
  EXPECT_EQ(swept.removed, 1U);
  EXPECT_EQ(swept.left, "");
  EXPECT_TRUE(fs::exists(own() / "1793.2/data"));
  EXPECT_FALSE(fs::exists(own() / "2049.0"));
  EXPECT_TRUE(fs::exists(own() / "mine"));
  EXPECT_TRUE(fs::exists(elsewhere / "kept")) << "links are not followed";
  EXPECT_EQ(sweep_volumes(place_ + "/none").removed, 0U);
}

TEST_F(VolumeDirectories, NodesOfOneHostShareTheFirstLink) {
  auto first = VolumeDirectory::make(place_, kPart);
  auto second = VolumeDirectory::make(place_, {kPart.attempt, 3});
  ASSERT_TRUE(first && second);
  const fs::path link = own() / "1793";
  EXPECT_EQ(VolumeDirectory::link_of(VolumeDirectory::path_of(place_, kPart)), link);
  EXPECT_EQ(fs::read_symlink(link), "1793.2/mount");
  ASSERT_TRUE(second->remove());
  EXPECT_TRUE(fs::is_directory(link));
  ASSERT_TRUE(first->remove());
  EXPECT_FALSE(fs::is_symlink(link));
}

TEST_F(VolumeDirectories, LinkOfDeadShepherdIsReplaced) {
  fs::create_directory(own());
  fs::permissions(own(), fs::perms(0700));
  fs::create_directory_symlink("1793.0/mount", own() / "1793");
  auto made = VolumeDirectory::make(place_, kPart);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(fs::read_symlink(own() / "1793"), "1793.2/mount");
}

TEST_F(VolumeDirectories, AreFoundByStepsOfTheirJob) {
  auto made = VolumeDirectory::make(place_, kPart);
  ASSERT_TRUE(made);
  EXPECT_EQ(find_volume_of(place_, base::JobId(7)), "") << "it has no description yet";
  std::ofstream(made->description()) << "name x\n";
  EXPECT_EQ(find_volume_of(place_, base::JobId(7)), own() / "1793.2");
  EXPECT_EQ(find_volume_of(place_, base::JobId(8)), "");
  EXPECT_EQ(find_volume_of("", base::JobId(7)), "");
}

// ---- the client of Statistics; the test plays the server

class StatisticsOfServer : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = base::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(bind(listener_.get(), generic, length), 0);
    ASSERT_EQ(listen(listener_.get(), 4), 0);
    ASSERT_EQ(getsockname(listener_.get(), generic, &length), 0);
    volume_.name = "job-1793";
    volume_.servers.push_back({"127.0.0.1", std::to_string(ntohs(address.sin_port))});
    begin();
  }

  // A loop that was stopped does not run again.
  void begin() {
    statistics_.reset();
    answers_.clear();
    auto made = EventLoop::create();
    ASSERT_TRUE(made);
    loop_.emplace(std::move(*made));
    statistics_.emplace(*loop_, volume_, 0, [this](const auto& got) {
      answers_.push_back(got);
      loop_->stop();
    });
  }

  // Lets the client run until it has answered, or until `most` has passed.
  void turn(base::Duration most) {
    loop_->after(most, [this] { loop_->stop(); });
    loop_->run();
  }

  void accept_and_send(std::string_view bytes) {
    peer_ = base::UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(peer_);
    ASSERT_TRUE(base::write_all(peer_.get(), bytes));
  }

  std::optional<EventLoop> loop_;
  base::UniqueFd listener_;
  base::UniqueFd peer_;
  pario::VolumeDescription volume_;
  std::optional<ServerStatistics> statistics_;
  std::vector<std::optional<pario::Statistics>> answers_;
};

TEST_F(StatisticsOfServer, IgnoresServerWithoutKey) {
  statistics_->ask();
  std::string greeting(pario::kMagic);
  greeting.append(16, 'n');
  accept_and_send(greeting + std::string(16, 'w'));  // a proof made without the key
  turn(std::chrono::seconds(60));
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_FALSE(answers_[0]);
}

TEST_F(StatisticsOfServer, SurvivesAnyBytesAsGreeting) {
  for (const std::string& bytes :
       {std::string("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), std::string(9'000, '\0'),
        std::string(pario::kMagic) + std::string(17, 'x')}) {
    begin();
    statistics_->ask();
    accept_and_send(bytes);
    turn(std::chrono::seconds(60));
    ASSERT_EQ(answers_.size(), 1U);
    EXPECT_FALSE(answers_[0]);
  }
}

TEST_F(StatisticsOfServer, ReportsLostServer) {
  listener_.reset();
  statistics_->ask();
  if (answers_.empty()) turn(std::chrono::seconds(60));
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_FALSE(answers_[0]);
}

// The test is an honest server that sends byte by byte.
TEST(StatisticsExchange, AsksRepeatedlyAfterHandshake) {
  pario::VolumeDescription volume;
  volume.name = "job-1793";
  volume.key.fill('k');
  volume.servers.push_back({"127.0.0.1", "7711"});
  StatisticsExchange exchange(volume, 0, pario::Nonce{'c'});
  std::string sent;
  const auto say = [&](std::string_view bytes) {
    for (const char byte : bytes) {
      const auto reply = exchange.take({&byte, 1});
      ASSERT_TRUE(reply);
      sent += *reply;
    }
  };
  const pario::Nonce nonce{'s'};
  say(std::string(pario::kMagic) + std::string(nonce.data(), nonce.size()));
  EXPECT_EQ(sent.size(), pario::kAnswerBytes);
  const pario::Proof proof =
      pario::make_proof(volume.key, {nonce, pario::Nonce{'c'}, 0, volume.name, false});
  say({proof.data(), proof.size()});
  EXPECT_EQ(sent.size(), pario::kAnswerBytes + pario::kHeaderBytes);
  for (std::uint64_t tag = 1; tag <= 2; ++tag) {
    EXPECT_FALSE(exchange.is_ready());
    std::string reply;
    pario::put(reply, pario::Reply{.body_bytes = sizeof(pario::Statistics), .tag = tag});
    pario::put(reply, pario::Statistics{.used = 7 * tag});
    say(reply);
    const auto answer = exchange.answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->used, 7 * tag);
    EXPECT_FALSE(exchange.answer()) << "once";
    ASSERT_TRUE(exchange.is_ready());
    exchange.question();
  }
}

TEST_F(StatisticsOfServer, ServerWithoutTimelyAnswerIsDropped) {
  statistics_->ask();
  statistics_->ask();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_FALSE(answers_[0]);
}

}  // namespace
}  // namespace score::shepherd
