// Keeps the greatest job number that a head has given to this node, with that head's proof. The
// node shows both in each hello, so that a head with an older database does not give the number
// again.
#pragma once

#include "base/ids.hpp"
#include "proto/frames/frame_reader.hpp"
#include "proto/frames/parse.hpp"
#include "proto/node.pb.h"

#include <string>

namespace score::node {

class GivenJob {
 public:
  // Does nothing if the frame is not PrepareTasks, or of an earlier job.
  void note(const proto::InFrame& frame) {
    if (frame.type != proto::FrameType::PrepareTasks) return;
    const auto message = proto::parse<wire::PrepareTasks>(frame);
    if (!message || base::job_of(AttemptId(message->attempt())) <= last_) return;
    last_ = base::job_of(AttemptId(message->attempt()));
    proof_ = message->job_proof();
  }

  void show(wire::NodeHello& hello) const {
    hello.set_last_job(last_.value());
    hello.set_last_job_proof(proof_);
  }

 private:
  JobId last_;
  std::string proof_;  // empty: an older head gave the job
};

}  // namespace score::node
