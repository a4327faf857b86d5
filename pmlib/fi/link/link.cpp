// Implements opening and closing, and the turns in which a link makes progress.
#include "pmlib/fi/link/link.hpp"

#include "pmlib/fi/peers/own_context.hpp"
#include "pmlib/network/broker.hpp"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace score::pm::fi {

namespace {

constexpr std::uint64_t kLingerUs =
    2'000'000;                               // chosen: messages not acknowledged by then are lost
constexpr std::int64_t kBusyWaitUs = 1'000;  // between polls while something cannot be sent

// A rank of a job can open its context only once, so all its endpoints share it.
std::mutex job_mutex;
std::weak_ptr<Link> job_link;
// Keeps the link of an address file. Peers know a rank by one context only, so a process that
// closes its last domain and opens a new one gets the same link.
std::shared_ptr<Link> kept_link;

// Returns the rank that an address file is opened for: the variable of scored, otherwise that of a
// process manager.
const char* rank_from_environment() {
  for (const char* name : {"PM_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

bool has_address_file() {
  return std::getenv("PM_ADDRESS_FILE") != nullptr && rank_from_environment() != nullptr;
}

bool is_in_job() {
  return std::getenv("PM_CONTEXT_FD") != nullptr || std::getenv(kBrokerVariable) != nullptr ||
         has_address_file();
}

std::uint32_t own_rank() {
  const char* rank = rank_from_environment();
  return rank != nullptr ? static_cast<std::uint32_t>(std::strtoul(rank, nullptr, 10)) : 0;
}

std::unique_ptr<pm::Endpoint> open_context(int& error, bool& is_of_file) {
  auto endpoint = pm::Endpoint::open_inherited(error);
  if (endpoint || error != ENOENT || !has_address_file()) return endpoint;
  std::string message;
  is_of_file = true;
  return pm::Endpoint::open_file(std::getenv("PM_ADDRESS_FILE"), own_rank(), error, message);
}

bool has_ranks_in_memory(const pm::Endpoint& pm) {
  for (std::uint32_t i = 0; i < pm.size(); ++i) {
    if (i != pm.rank() && pm.segment().peer(i).route != Route::Packet) return true;
  }
  return false;
}

}  // namespace

// --- opening and closing -----------------------------------------------------------------------

std::shared_ptr<Link> Link::open(const Name& own, int& error) {
  const std::lock_guard lock(job_mutex);
  if (auto link = job_link.lock()) {
    error = 0;
    link->needs_lock = true;  // there are two users now, whatever the first domain asked for
    return link;
  }
  auto link = open_job(error);
  if (link) job_link = link;
  if (link || error != ENOENT) return link;
  return open_own(own, error);
}

std::shared_ptr<Link> Link::open_job(int& error) {
  bool is_of_file = false;
  auto endpoint = open_context(error, is_of_file);
  // MPI's own shared memory needs no path of PM's.
  const bool shares_host = is_of_file && endpoint && endpoint->ranks_here() > 1;
  auto link = endpoint ? over(std::move(endpoint), error, shares_host) : nullptr;
  if (is_of_file) kept_link = link;
  return link;
}

void Link::forget_kept() {
  const std::lock_guard lock(job_mutex);
  kept_link.reset();
}

Name Link::expected_name(std::uint32_t ip, std::uint16_t udp_port) {
  const std::lock_guard lock(job_mutex);
  if (const auto link = job_link.lock()) return link->peers().name_of(0);
  Name name;
  if (is_in_job()) {
    name.rank = own_rank();
    return name;
  }
  name.kind = NameKind::Udp;
  name.ip = own_ip(ip);
  name.udp_port = udp_port;
  return name;
}

std::shared_ptr<Link> Link::over(std::unique_ptr<pm::Endpoint> endpoint, int& error,
                                 bool shares_host) {
  const SegmentHeader& h = endpoint->segment().header();
  Name name;
  name.kind = NameKind::Job;
  name.key = mark_of(h.key, h.generation, h.channel);
  name.rank = h.rank;
  const bool has_near_ranks = shares_host || has_ranks_in_memory(*endpoint);
  std::shared_ptr<Link> link(new Link(std::move(endpoint), name, nullptr, has_near_ranks));
  error = link->wait_set_.open();
  return error == 0 ? link : nullptr;
}

std::shared_ptr<Link> Link::open_own(const Name& own, int& error) {
  OwnContext context = open_own_context(own.ip, own.udp_port, error);
  if (!context.endpoint) return nullptr;
  std::shared_ptr<Link> link(
      new Link(std::move(context.endpoint), context.name, context.directory, true));
  error = link->wait_set_.open();
  return error == 0 ? link : nullptr;
}

Link::Link(std::unique_ptr<pm::Endpoint> pm, const Name& name, Directory* directory,
           bool has_near_ranks)
    : pm_(std::move(pm)),
      peers_(*pm_, name, directory),
      wait_set_(*pm_),
      silence_(*pm_),
      regions_(*pm_),
      requests_(*pm_, regions_),
      sender_({*pm_, peers_, wait_set_, silence_, requests_, *this}),
      transfers_(*pm_, sender_, requests_, regions_),
      receiver_(*pm_, requests_, transfers_, *this),
      rest_({*pm_, *this, wait_set_, silence_, peers_, requests_, sender_, transfers_, receiver_},
            has_near_ranks) {}

Link::~Link() {
  const std::uint64_t end = now_us() + kLingerUs;
  while (!is_drained() && now_us() < end) {
    if (!progress()) pm_->wait(kBusyWaitUs);
  }
}

bool Link::is_drained() const {
  const Segment& segment = pm_->segment();
  if (sender_.has_queued() || transfers_.has_outgoing()) return false;
  if (segment.header().free_descriptors != segment.geometry().descriptors) return false;
  for (std::uint32_t i = 0; i < segment.geometry().pool_buffers; ++i) {
    if (segment.pool_used(i).load(std::memory_order_relaxed) != 0) return false;
  }
  return true;
}

// --- turns -------------------------------------------------------------------------------------

bool Link::progress() {
  wait_set_.disarm();
  bool something = receiver_.receive();
  if (has_late_work()) [[unlikely]]
    something |= do_late_work();
  pm_->send_due_acks();  // sends the acknowledgements that no answer has carried
  if (something) {
    silence_.expect_more();
  } else {
    silence_.note_empty_turn();
  }
  return something;
}

// Sends what could not be sent at once, continues large transfers, and introduces unknown peers.
bool Link::do_late_work() {
  bool something = sender_.has_queued() && sender_.send_queued();
  if (transfers_.has_any()) {
    pm_->progress();  // completes writes; receive() alone does not
    something |= transfers_.pump_all();
  }
  if (peers_.has_unready()) peers_.introduce();
  return something;
}

bool Link::prepare_to_wait() {
  if (progress()) return false;
  const bool is_busy = sender_.has_queued() || transfers_.has_outgoing() || peers_.has_unready();
  return wait_set_.arm(is_busy ? kBusyWaitUs : -1);
}

void Link::on_death(std::uint32_t peer) {
  if (!sender_.fail(peer)) return;
  receiver_.fail(peer);
  transfers_.fail(peer);
}

}  // namespace score::pm::fi
