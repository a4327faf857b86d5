#include "pmlib/fi/objects/no_ops.hpp"
#include "pmlib/fi/objects/objects.hpp"

#include <algorithm>

namespace score::pm::fi {

namespace {

int close_set(fid* f) {
  delete &object_of<PollSet>(f);
  return 0;
}

int poll_set(fid_poll* set, void** contexts, int count) {
  if (contexts == nullptr || count < 0) return -FI_EINVAL;
  return static_cast<PollSet*>(set)->poll(contexts, count);
}

int add_to_set(fid_poll* set, fid_t member, std::uint64_t) {
  return member != nullptr ? static_cast<PollSet*>(set)->add(member) : -FI_EINVAL;
}

int remove_from_set(fid_poll* set, fid_t member, std::uint64_t) {
  return static_cast<PollSet*>(set)->remove(member);
}

fi_ops set_fid_ops = {sizeof(fi_ops), close_set, no_op, no_op, no_op, nullptr, nullptr};
fi_ops_poll set_ops = {sizeof(fi_ops_poll), poll_set, add_to_set, remove_from_set};

bool has_news(fid_t member) {
  return member->fclass == FI_CLASS_CQ ? object_of<Cq>(member).poll_once()
                                       : object_of<Counter>(member).poll_once();
}

}  // namespace

PollSet::PollSet(Domain& domain)
    : fid_poll{{FI_CLASS_POLL, nullptr, &set_fid_ops}, &set_ops}, domain_(domain) {
  ++domain_.users;
}

PollSet::~PollSet() {
  --domain_.users;
}

int PollSet::add(fid_t member) {
  if (member->fclass != FI_CLASS_CQ && member->fclass != FI_CLASS_CNTR) return -FI_EINVAL;
  if (std::find(members_.begin(), members_.end(), member) == members_.end()) {
    members_.push_back(member);
  }
  return 0;
}

int PollSet::remove(fid_t member) {
  return std::erase(members_, member) > 0 ? 0 : -FI_EINVAL;
}

int PollSet::poll(void** contexts, int count) {
  int found = 0;
  for (fid_t member : members_) {
    if (found < count && has_news(member)) contexts[found++] = member->context;
  }
  return found;
}

}  // namespace score::pm::fi
