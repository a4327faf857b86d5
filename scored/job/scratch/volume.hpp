#pragma once
// The volume of a job on this node: its server and its mount, from Prepare to the job's end.
//
//   begin()    directory and listener: the address goes to the head (ScratchReady)
//   serve()    the addresses of all nodes are there (ScratchServers): description, server, mount
//   ready      mounted: the tasks may start
//   remove()   the job has ended everywhere
//
// The listener stays open here, so a server that was killed leaves its port to the next one, and
// clients that connect meanwhile wait in its queue. A mount that was killed is made again; files
// that programs had open on it are lost to them (ENOTCONN).

#include "pario/core/volume_file.hpp"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"
#include "scored/job/scratch/program.hpp"
#include "scored/job/scratch/statistics.hpp"
#include "scored/job/scratch/volume_directory.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::shepherd {

class JobVolume {
 public:
  struct Handlers {
    std::function<void(const wire::ScratchReady&)> listens;
    std::function<void()> ready;                         // once
    std::function<void(const std::string& why)> failed;  // before `ready`, once; one line
    std::function<void(const wire::ShepherdScratch&)> sample;
  };

  // The loop must outlive it. `prepare` has the node's part; key: as in the description.
  JobVolume(EventLoop& loop, const wire::ShepherdPrepare& prepare, std::string key,
            Handlers handlers);
  ~JobVolume();
  JobVolume(const JobVolume&) = delete;
  JobVolume& operator=(const JobVolume&) = delete;

  // What this node lacks for a volume, for the user; empty: nothing.
  static std::string missing_here();

  // The user's PARIO_TRANSPORT: with "pm" or "udp" data goes by PM between nodes. Before serve().
  void set_transport(std::string_view wanted);
  // Errors: one line for the user.
  base::Status begin();
  // Repeated, or before begin() succeeded: nothing happens.
  void serve(const wire::ScratchServers& servers);
  // The connection to the head was lost: what it may have missed is sent again.
  void resume();
  // The tasks are being killed: what they wait for of the mount ends.
  void abandon();
  // Ends everything. Errors: what is left.
  base::Status remove();

  [[nodiscard]] bool is_ready() const { return is_ready_; }

  // Children that must not be killed with what the tasks left behind.
  [[nodiscard]] std::vector<pid_t> processes() const { return {server_.pid(), mount_.pid()}; }

 private:
  void say_listening();
  base::Status listen();
  base::Status describe(const wire::ScratchServers& servers);
  void start_server();
  void start_mount();
  void mounted();
  void server_ended();
  void mount_ended();
  void fail(const std::string& why);
  void sample_regularly();
  void send_sample();
  base::Duration next_pause(base::Duration& pause) const;

  EventLoop& loop_;
  std::string path_;
  std::string host_;
  std::string key_;
  bool uses_pm_ = false;  // between nodes
  base::AttemptId attempt_;
  std::uint32_t index_;
  std::uint32_t count_;  // nodes of the job
  std::uint64_t capacity_;
  Handlers handlers_;
  std::optional<VolumeDirectory> directory_;
  base::UniqueFd listener_;
  std::string address_;
  pario::VolumeDescription volume_;  // from serve() on
  Program server_;
  Program mount_;
  std::optional<ServerStatistics> statistics_;
  wire::ShepherdScratch sample_;
  base::Duration server_pause_{};
  base::Duration mount_pause_{};
  EventLoop::TimerId deadline_ = 0;
  EventLoop::TimerId server_timer_ = 0;
  EventLoop::TimerId mount_timer_ = 0;
  EventLoop::TimerId sample_timer_ = 0;
  bool is_ready_ = false;
  bool is_abandoned_ = false;  // nothing is started again
};

}  // namespace score::shepherd
