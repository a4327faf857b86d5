#include "gang/leadership/witness.hpp"

namespace score::gang {

LeaseReply Witness::answer(const LeaseRequest& request, TimePoint now) {
  LeaseReply reply;
  reply.sent = request.sent;
  reply.asked = request.term;
  reply.is_free = is_free_for(request.head, now);
  const bool is_renewal = request.term == memory_.term && memory_.holder == request.head;
  reply.granted = request.wants && reply.is_free && (request.term > memory_.term || is_renewal);
  if (reply.granted) {
    memory_.term = request.term;
    memory_.holder = request.head;
    until_ = now + lease_;
    if (memory_.mark.is_older_than(request.mark)) memory_.mark = request.mark;
  }
  reply.term = memory_.term;
  reply.mark = memory_.mark;
  return reply;
}

}  // namespace score::gang
