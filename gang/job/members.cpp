#include "gang/job/members.hpp"

namespace score::gang {

void Members::ask_all(std::size_t count) {
  *this = {};
  states_.assign(count, Member::Asked);
  asked_ = remaining_ = count;
}

void Members::assume_started(std::size_t count) {
  *this = {};
  states_.assign(count, Member::Started);
  remaining_ = count;
  for (std::size_t m = 0; m < count; ++m) not_begun_.insert(m);
}

void Members::keep_first() {
  for (std::size_t m = 1; m < states_.size(); ++m) {
    gone(m);
    states_[m] = Member::Bare;
  }
}

std::vector<std::size_t> Members::in(Member state) const {
  std::vector<std::size_t> out;
  for (std::size_t m = 0; m < states_.size(); ++m) {
    if (states_[m] == state) out.push_back(m);
  }
  return out;
}

bool Members::prepared(std::size_t member) {
  if (states_[member] != Member::Asked) return false;
  states_[member] = Member::Prepared;
  return --asked_ == 0;
}

void Members::ask_again(std::size_t member) {
  if (states_[member] != Member::Asked) ++asked_;
  states_[member] = Member::Asked;
}

void Members::start(std::size_t member, base::Duration scheduled) {
  states_[member] = Member::Started;
  not_begun_.insert(member);
  start_scheduled_ = scheduled;
}

bool Members::began(std::size_t member) {
  const bool is_new = not_begun_.erase(member) > 0;
  has_run_ |= is_new;
  return is_new;
}

void Members::note_run(std::size_t member, bool has_run) {
  has_run_ |= has_run;
  if (!has_run && not_begun_.erase(member) > 0) states_[member] = Member::Prepared;
}

bool Members::gone(std::size_t member) {
  if (!has_tasks(member)) return false;
  if (states_[member] == Member::Asked) --asked_;
  has_run_ |= states_[member] == Member::Started;
  states_[member] = Member::Gone;
  not_begun_.erase(member);
  --remaining_;
  return true;
}

}  // namespace score::gang
