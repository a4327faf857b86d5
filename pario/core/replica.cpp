#include "pario/core/replica.hpp"

#include <algorithm>
#include <utility>

namespace score::pario {

Replica::Replica(const ReplicaView& stored, bool is_first)
    : view_(stored), is_first_(is_first), has_restarted_(stored.mode == ReplicaMode::Leading) {
  // A replica that led alone is the only one with all data. One that led a follower does not know
  // what the follower has done since.
  is_sure_ = stored.mode == ReplicaMode::Alone;
  actions_.push_back(Action::Probe);
}

std::vector<Replica::Action> Replica::take_actions() {
  return std::exchange(actions_, {});
}

bool Replica::follows(std::uint64_t number) {
  if (view_.mode != ReplicaMode::Following || number != view_.number) return false;
  is_sure_ = true;
  return true;
}

void Replica::set(ReplicaMode mode, std::uint64_t number) {
  view_ = {number, mode};
  actions_.push_back(Action::Store);
}

void Replica::lead_alone(std::uint64_t above) {
  set(ReplicaMode::Alone, std::max(view_.number, above) + 1);
  is_sure_ = true;
  has_restarted_ = false;
  is_repairing_ = false;
}

void Replica::peer_is(const ReplicaView& peer) {
  const bool peer_leads = peer.mode == ReplicaMode::Leading || peer.mode == ReplicaMode::Alone;
  const bool peer_is_lost = peer.mode == ReplicaMode::Empty || peer.mode == ReplicaMode::Stale;
  is_asked_ = false;
  switch (view_.mode) {
    case ReplicaMode::Empty:
      // Both replicas are new. The first one leads; the other one is filled, with no data.
      if (peer.mode == ReplicaMode::Empty && is_first_) lead_alone(0);
      break;
    case ReplicaMode::Stale:
      break;
    case ReplicaMode::Following:
      if (peer_is_lost) lead_alone(peer.number);
      if (peer.mode == ReplicaMode::Leading && peer.number == view_.number) is_sure_ = true;
      break;
    case ReplicaMode::Leading:
      if (peer_leads && peer.number > view_.number) {
        set(ReplicaMode::Stale, view_.number);
        is_sure_ = false;
        is_repairing_ = false;
      } else if (peer_is_lost || has_restarted_) {
        // The follower may lack this replica's last changes before it ended, so it is filled again.
        lead_alone(peer.number);
      } else {
        is_sure_ = true;
      }
      break;
    case ReplicaMode::Alone:
      if (peer_leads &&
          (peer.number > view_.number || (peer.number == view_.number && !is_first_))) {
        set(ReplicaMode::Stale, view_.number);  // both led: the later one keeps its data
        is_sure_ = false;
        is_repairing_ = false;
      }
      break;
  }
  if (view_.mode == ReplicaMode::Alone && !is_repairing_ && !peer_leads) {
    is_repairing_ = true;
    actions_.push_back(Action::Repair);
  }
}

void Replica::peer_is_gone() {
  // A client requests service, and only this replica can provide it.
  if (view_.mode == ReplicaMode::Following && is_asked_ && is_sure_) lead_alone(0);
  is_asked_ = false;
}

void Replica::asked() {
  if (serves()) return;
  if (!is_asked_) actions_.push_back(Action::Probe);
  is_asked_ = true;
}

void Replica::follower_is_lost() {
  is_repairing_ = false;
  if (view_.mode == ReplicaMode::Leading) lead_alone(0);
}

void Replica::repaired(std::uint64_t number) {
  if (!is_repairing_) return;
  is_repairing_ = false;
  set(ReplicaMode::Leading, number);
}

void Replica::begin_filling() {
  set(ReplicaMode::Stale, view_.number);
  is_sure_ = false;
  is_repairing_ = false;
}

void Replica::filled(std::uint64_t number) {
  set(ReplicaMode::Following, number);
  is_sure_ = true;
}

void Replica::stood_still() {
  if (view_.mode == ReplicaMode::Leading) is_sure_ = false;
}

void Replica::tick() {
  const bool is_settled =
      is_sure_ && (view_.mode == ReplicaMode::Following || view_.mode == ReplicaMode::Leading);
  if (!is_settled && !is_repairing_) actions_.push_back(Action::Probe);
}

}  // namespace score::pario
