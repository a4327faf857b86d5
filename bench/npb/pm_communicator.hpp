// Implements Communicator over PM. Between two ranks there is a stream of messages in order, so a
// message needs no name. A short part goes as messages of at most pm_mtu() bytes; a long one is
// announced and fetched from the sender's memory. Data that arrives before the rank asks for it is
// kept.
#pragma once

#include "bench/npb/communicator.hpp"

#include <deque>
#include <pm.hpp>
#include <vector>

namespace score::npb {

class PmCommunicator final : public Communicator {
 public:
  // `context` must outlive the object.
  explicit PmCommunicator(pm::Context& context);
  // Waits for all ranks, then until everything that was sent has arrived.
  ~PmCommunicator() override;

  [[nodiscard]] Rank rank() const override { return context_.self(); }

  [[nodiscard]] Rank size() const override { return context_.size(); }

  void transfer(std::span<const Outgoing> out, std::span<const Incoming> in) override;

 private:
  static constexpr std::size_t kLargeBytes = 16 * 1024;  // longer parts are fetched, not copied

  struct Early {
    std::vector<std::byte> bytes;
    pm_message large;  // if `bytes` is empty: not released yet
  };

  struct Source {
    std::span<std::byte> wanted;  // the missing part
    std::deque<Early> early;
  };

  struct Sending {
    Outgoing part;
    std::size_t sent = 0;
  };

  struct Operation {  // a remote memory operation in progress
    pm_op op;
    pm_handle memory;
  };

  bool send_some();
  bool send_part(Sending& sending);
  bool receive_some();
  bool end_operations();
  void accept(Source& source, std::span<const std::byte> bytes);
  void fetch(Source& source, const pm_message& message);
  void take_early(Source& source);
  bool start_operation(std::span<const std::byte> memory, auto start);

  pm_context* raw() const { return context_.raw(); }

  pm::Context& context_;
  std::vector<Source> sources_;  // [rank]
  std::deque<Sending> sending_;
  std::vector<Operation> operations_;
  std::size_t missing_bytes_ = 0;
};

}  // namespace score::npb
