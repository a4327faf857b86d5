#include "scored/head/etcd/etcd_witness.hpp"

#include "scored/shared/leases/lease_wire.hpp"

namespace score::head::etcd {
namespace {

std::string format_memory(const gang::Witness::Memory& memory) {
  return leases::format_grant({memory.term, memory.holder, memory.mark});
}

}  // namespace

Status EtcdWitness::found(const KeyState& state, TimePoint now) {
  if (witness_ && state.revision == revision_) return {};
  witness_.reset();
  gang::Witness::Memory memory;
  if (state.revision != 0) {
    const auto grant = leases::parse_grant(state.value);
    if (!grant) return grant.error();
    memory = {grant->term, grant->holder, grant->mark};
  }
  witness_.emplace(memory, lease_, now);
  revision_ = state.revision;
  return {};
}

std::optional<EtcdWitness::Proposal> EtcdWitness::propose(const gang::LeaseRequest& request,
                                                          TimePoint now) const {
  gang::Witness changed = *witness_;
  const gang::LeaseReply reply = changed.answer(request, now);
  if (!reply.granted) return std::nullopt;
  return Proposal{revision_, format_memory(changed.memory()), reply, changed};
}

gang::LeaseReply EtcdWitness::stored(const Proposal& proposal, std::uint64_t revision) {
  witness_ = proposal.witness;
  revision_ = revision;
  return proposal.reply;
}

gang::LeaseReply EtcdWitness::answer(gang::LeaseRequest request, TimePoint now) const {
  request.wants = false;
  gang::Witness copy = *witness_;
  return copy.answer(request, now);
}

}  // namespace score::head::etcd
