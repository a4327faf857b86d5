#pragma once
// EtcdWitness makes a key of etcd answer like a witness (gang/leadership/witness.hpp): the value is
// what a witness stores, and the heads change it only by replacing the revision that they know.
// Each head has one object. It has no I/O and no clock.
//
// No clock of etcd counts. The holder's lease is measured from when it sent its renewal, and the
// other head's wait from when it saw that renewal's revision, which is later. If a renewal comes
// in between, the revision differs and nothing is replaced.

#include "base/result.hpp"
#include "gang/leadership/witness.hpp"
#include "scored/head/etcd/etcd_message.hpp"

#include <optional>
#include <string>

namespace score::head::etcd {

class EtcdWitness {
 public:
  explicit EtcdWitness(Duration lease) : lease_(lease) {}

  // The key was read; `now` is when the answer arrived. Errors: Malformed, if the value is not one
  // of a head. Then nothing is known of the key.
  Status found(const KeyState& state, TimePoint now);

  // Proposal is a value to store in place of the one of this revision.
  struct Proposal {
    std::uint64_t revision = 0;
    std::string value;
    gang::LeaseReply reply;  // if it was stored
    gang::Witness witness;
  };

  // Returns the change that the request needs; nullopt if it needs or permits none. The key must
  // be known.
  [[nodiscard]] std::optional<Proposal> propose(const gang::LeaseRequest& request,
                                                TimePoint now) const;
  // The proposal was stored.
  gang::LeaseReply stored(const Proposal& proposal, std::uint64_t revision);
  // Answers a request without a change. The key must be known, and read after the request arrived.
  [[nodiscard]] gang::LeaseReply answer(gang::LeaseRequest request, TimePoint now) const;

  [[nodiscard]] bool is_known() const { return witness_.has_value(); }

 private:
  Duration lease_;
  std::uint64_t revision_ = 0;
  std::optional<gang::Witness> witness_;
};

}  // namespace score::head::etcd
