#pragma once
// Runs the volume of a job on this node, which consists of a server and a mount, from Prepare to
// the job's end.
//
//   begin()    creates directory and listener; the address goes to the head (ScratchReady)
//   serve()    the addresses of all nodes are known (ScratchServers): description, server, mount
//   ready      the volume is mounted, and the tasks may start
//   remove()   the job has ended everywhere
//
// The listener stays open here, so a killed server leaves its port to the next one, and clients
// that connect meanwhile wait in its queue. A killed mount is mounted again; programs lose the
// files that they had open on it (ENOTCONN).

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

  // Loop and helpers must outlive this object. `prepare` has the node's part; key: as in the
  // description.
  JobVolume(EventLoop& loop, HelperClient& helpers, const wire::ShepherdPrepare& prepare,
            std::string key, Handlers handlers);
  ~JobVolume();
  JobVolume(const JobVolume&) = delete;
  JobVolume& operator=(const JobVolume&) = delete;

  // Returns what this node lacks for a volume, as a text for the user; empty if nothing is missing.
  static std::string missing_here();

  // Applies the user's PARIO_TRANSPORT: with "pm" or "udp" data is sent by PM between nodes. Call
  // it before serve().
  void set_transport(std::string_view wanted);
  // Creates the directory and the listener. Errors: one line for the user.
  base::Status begin();
  // Starts server and mount. Does nothing if it is repeated, or called before begin() succeeded.
  void serve(const wire::ScratchServers& servers);
  // Handles a lost connection to the head: messages that it may have missed are sent again.
  void resume();
  // Call this when the tasks are being killed: their pending operations on the mount fail.
  void abandon();
  // Ends everything. Errors: what is left.
  base::Status remove();

  [[nodiscard]] bool is_ready() const { return is_ready_; }

  [[nodiscard]] bool is_abandoned() const { return is_abandoned_; }

 private:
  void report_listening();
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
  bool is_abandoned_ = false;  // no program is started again
};

}  // namespace score::shepherd
