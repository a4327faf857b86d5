#include "pmlib/fi/link/requests.hpp"

#include <cerrno>

namespace score::pm::fi {

Requests::~Requests() {
  for (const std::uint32_t id : entered_.ids()) delete entered_.take(id);
}

std::uint32_t Requests::enter(LinkRequest& request) {
  request.id = entered_.add(&request);
  return request.id;
}

LinkRequest* Requests::add(std::unique_ptr<LinkRequest> request) {
  ++waiting_.requests;
  waiting_.bytes += request->copied;
  unasked_[request->to.peer] += request->unasked;
  return request.release();
}

void Requests::end(LinkRequest* request, int error) {
  const std::unique_ptr<LinkRequest> owned(request);
  if (request->id != 0) entered_.take(request->id);
  --waiting_.requests;
  waiting_.bytes -= request->copied;
  unasked_[request->to.peer] -= request->unasked;
  if (request->operation != 0) pm_.test(request->operation);
  if (request->has_region) regions_.drop(request->region);
  request->finish(error);
}

void Requests::end(std::uint32_t id, int error) {
  if (LinkRequest** const request = entered_.find(id); request != nullptr) end(*request, error);
}

bool Requests::cancel(const void* endpoint, const void* context) {
  for (const std::uint32_t id : entered_.ids()) {
    LinkRequest* const request = *entered_.find(id);
    if (!request->awaits_answer() || !request->is_cancellable(endpoint, context)) continue;
    end(request, ECANCELED);
    return true;
  }
  return false;
}

void Requests::fail(std::uint32_t peer) {
  for (const std::uint32_t id : entered_.ids()) {
    LinkRequest** const request = entered_.find(id);
    if (request != nullptr && (*request)->to.peer == peer) end(*request, EHOSTDOWN);
  }
}

LinkRequest* Requests::find_asked(std::uint64_t id, std::uint32_t from) {
  if (id > UINT32_MAX) return nullptr;
  LinkRequest** const found = entered_.find(static_cast<std::uint32_t>(id));
  if (found == nullptr) return nullptr;
  const LinkRequest& request = **found;
  const bool is_asked = request.to.peer == from && !request.is_queued && !request.is_moving;
  return is_asked ? *found : nullptr;
}

}  // namespace score::pm::fi
