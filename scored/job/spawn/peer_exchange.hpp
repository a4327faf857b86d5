#pragma once
// Connects the shepherds of a job for their PMI-1 servers: fences of the tasks of one MPI world,
// and published names. It is an Exchange with the event loop's timer around it.

#include "proto/node.pb.h"
#include "scored/job/pmix/exchange.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace score::shepherd {

class PeerExchange {
 public:
  using Answer = pmix::Exchange::Answer;
  using Answered = std::function<void(const Answer&)>;
  using Send = std::function<void(wire::JobRelay&&)>;  // to node `node_index`

  // nodes_of_tasks is indexed by number in the job. The loop must outlive this object.
  PeerExchange(EventLoop& loop, std::uint32_t node, std::vector<std::uint32_t> nodes_of_tasks,
               Send send);
  ~PeerExchange();
  PeerExchange(const PeerExchange&) = delete;
  PeerExchange& operator=(const PeerExchange&) = delete;

  // Enters a fence. tasks: numbers in the job. The answer is the concatenated data of all nodes.
  void fence(std::vector<std::uint32_t> tasks, std::string data, Answered answered);
  void publish(std::uint32_t owner, const std::string& name, std::string value, Answered answered);
  void lookup(const std::string& name, Answered answered);
  void unpublish(std::uint32_t owner, const std::string& name, Answered answered);

  void receive(std::uint32_t from, const wire::PmixPeer& message);

 private:
  pmix::Exchange::Token expect(Answered answered);
  void carry_out();
  void turn();

  EventLoop& loop_;
  pmix::Exchange exchange_;
  Send send_;
  pmix::Exchange::Token last_token_ = 0;
  std::map<pmix::Exchange::Token, Answered> waiting_;
  EventLoop::TimerId timer_ = 0;
};

}  // namespace score::shepherd
