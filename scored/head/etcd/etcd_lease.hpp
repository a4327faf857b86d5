#pragma once
// EtcdLease answers the lease requests of this head by a key of etcd (etcd_witness.hpp). It also
// reads the key regularly, so that a wait for the end of the other head's lease begins soon after
// each renewal. Thread: the loop's.

#include "base/async/alarm.hpp"
#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/result.hpp"
#include "gang/leadership/lease.hpp"
#include "scored/head/etcd/etcd_client.hpp"
#include "scored/head/etcd/etcd_witness.hpp"
#include "scored/head/etcd/lease_config.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace score::head::etcd {

class EtcdLease {
 public:
  using OnReply = std::function<void(gang::LeaseReply reply)>;

  // `io` and `clock` must outlive the object. Errors: those of EtcdClient::open().
  static Result<std::unique_ptr<EtcdLease>> open(asio::io_context& io, Clock& clock,
                                                 const LeaseConfig& config,
                                                 const std::string& cluster);

  // Replies go to `on_reply`, from the task that runs run().
  void handle(OnReply on_reply) { on_reply_ = std::move(on_reply); }

  // Drops the request before this one if it was not sent yet.
  void ask(const gang::LeaseRequest& request);

  // Runs until it is cancelled.
  asio::awaitable<void> run();

  // Returns text for users, such as "the lease is in etcd", with the fault if there is one.
  [[nodiscard]] std::string describe() const;

 private:
  EtcdLease(asio::io_context& io, Clock& clock, std::unique_ptr<EtcdClient> client, std::string key,
            gang::LeaseTiming timing)
      : clock_(clock),
        alarm_(io, clock),
        client_(std::move(client)),
        key_(std::move(key)),
        timing_(timing),
        witness_(timing.lease) {}

  asio::awaitable<Result<gang::LeaseReply>> serve(gang::LeaseRequest request);
  asio::awaitable<Status> read();
  asio::awaitable<Result<std::optional<gang::LeaseReply>>> replace(EtcdWitness::Proposal proposal);
  asio::awaitable<Status> step();
  Status check_cluster(std::uint64_t id);
  void note_fault(const Error& error);

  Clock& clock_;
  Alarm alarm_;
  std::unique_ptr<EtcdClient> client_;
  std::string key_;
  gang::LeaseTiming timing_;
  EtcdWitness witness_;
  OnReply on_reply_;
  std::optional<gang::LeaseRequest> waiting_;
  std::uint64_t cluster_ = 0;
  std::string fault_;
  TimePoint answered_{};
  bool is_idle_ = false;
  bool is_watching_ = true;  // this head neither has the lease nor wants it
};

}  // namespace score::head::etcd
