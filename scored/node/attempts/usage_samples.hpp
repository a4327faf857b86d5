#pragma once
// UsageSamples tells the head every ten seconds what each attempt has used here since it was told
// before. The head makes the profiles of jobs from it.

#include "scored/node/attempts/attempt.hpp"

#include <map>

namespace score::node {

class UsageSamples {
 public:
  // `parts` must outlive the object.
  explicit UsageSamples(const AttemptParts& parts) : parts_(parts) {}

  // Must be called when the head has welcomed the node. `takes_samples`: it knows UsageSample.
  void welcomed(bool takes_samples) { takes_samples_ = takes_samples; }

  // Leaves out what an attempt has used until now, because an earlier daemon has reported it.
  void begin(Attempt& attempt) const;
  // Reads the memory of all attempts, and reports to the head if ten seconds of the wall clock have
  // passed. All nodes do that at about the same time. Call it every kMemoryPeriod. What was not
  // reported, because there is no head, is part of the next sample.
  void sample(const std::map<AttemptId, AttemptPtr>& attempts);

 private:
  void report(const std::map<AttemptId, AttemptPtr>& attempts) const;

  const AttemptParts& parts_;
  bool takes_samples_ = false;
  Duration last_{0};  // number of the ten seconds in which it reported last
};

}  // namespace score::node
