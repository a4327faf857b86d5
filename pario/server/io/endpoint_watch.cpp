#include "pario/server/io/endpoint_watch.hpp"

#include "pario/channel/pipe.hpp"

#include <poll.h>

namespace score::pario {

bool EndpointWatch::arm(bool needs_room) {
  pm::Endpoint::Sleep sleep;
  if (endpoint_.prepare_sleep(-1, pm::ContextState::Rests, sleep) != 0) return false;
  std::int64_t timeout_us = sleep.timeout_us;
  if (needs_room && (timeout_us < 0 || timeout_us > kRoomLookUs)) timeout_us = kRoomLookUs;
  due_us_ = timeout_us < 0 ? -1 : static_cast<std::int64_t>(pm::now_ns() / 1'000) + timeout_us;
  is_armed_ = true;
  poll(peers_news_, sleep.news[0].fd);
  poll(device_news_, sleep.news[1].fd);
  return true;
}

void EndpointWatch::poll(Polled& polled, int fd) {
  if (polled.is_polling || fd < 0) return;
  io_uring_prep_poll_add(ring_.next(&polled), fd, POLLIN);
  polled.is_polling = true;
}

void EndpointWatch::disarm() {
  if (is_armed_) endpoint_.after_select();
  is_armed_ = false;
}

void EndpointWatch::close() {
  disarm();
  for (Polled* polled : {&peers_news_, &device_news_}) {
    if (!polled->is_polling) continue;
    io_uring_prep_poll_remove(ring_.next(nullptr), reinterpret_cast<std::uint64_t>(polled));
  }
}

}  // namespace score::pario
