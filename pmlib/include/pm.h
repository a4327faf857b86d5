/* PM provides messages and remote memory between the ranks of a parallel job.
 *
 * Messages are reliable and arrive in the order in which they were sent, for each pair of ranks.
 * No function blocks except pm_wait() and pm_send_message(). The library has no thread: it works
 * while one of its functions runs, so a rank that computes for long should call pm_progress() now
 * and then.
 *
 * Only one thread may use a context at a time; threads may use different contexts at once.
 * Functions that return int return PM_SUCCESS (0) or one of the PM_E* numbers below, which are
 * values of errno. Lengths and offsets are bytes, times microseconds. Pointer arguments must not be
 * null unless stated otherwise.
 *
 * Build with `pkg-config --cflags --libs pm`.
 */
#ifndef PM_H
#define PM_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PM_VERSION_MAJOR 1
#define PM_VERSION_MINOR 1

#define PM_SUCCESS 0
#define PM_EAGAIN EAGAIN           /* no message; for a datagram: no room */
#define PM_EINPROGRESS EINPROGRESS /* the operation is still running */
#define PM_ENOBUFS ENOBUFS         /* no buffer now: call pm_progress() or pm_wait(), try again */
#define PM_EBUSY EBUSY             /* in use: see the function */
#define PM_EINVAL EINVAL           /* no such rank, handle, operation; or a wrong length */
#define PM_EMSGSIZE EMSGSIZE       /* longer than pm_mtu() */
#define PM_EACCES EACCES           /* the peer's memory is not registered under this handle */
#define PM_EPEER EHOSTDOWN         /* the peer has died or left */
#define PM_ETIMEDOUT ETIMEDOUT     /* the timeout has passed */

typedef struct pm_context pm_context;

/* --- opening ------------------------------------------------------------------------------- */

/* Opens the context that was handed to this process (environment PM_CONTEXT_FD), or, if there is
 * none, the one that PM_ADDRESS_FILE and PM_RANK name. Returns ENOENT if neither is set. */
int pm_open(pm_context** context);

/* Opens rank `rank` of the job that an address file describes; see pm(7). If `message` is not null,
 * it gets an error text of at most `message_bytes` bytes, ended by 0. */
int pm_open_file(const char* path, uint32_t rank, pm_context** context, char* message,
                 size_t message_bytes);

/* Leaves the job. Messages that are not acknowledged yet may be lost, so call pm_quiet() first
 * until it returns 1. Null is allowed. */
void pm_close(pm_context* context);

/* Returns the own rank, 0 .. pm_size() - 1. */
uint32_t pm_self(const pm_context* context);

/* Returns the number of ranks. */
uint32_t pm_size(const pm_context* context);

/* Returns the length of the longest message to rank `dest`, or 0 if there is no such rank. */
uint32_t pm_mtu(const pm_context* context, uint32_t dest);

/* --- messages ------------------------------------------------------------------------------ */

/* Lends memory for a message of `length` <= pm_mtu() to `dest`, to be built in place. Only one
 * buffer is lent at a time: returns PM_EBUSY if the previous one was neither sent nor cancelled.
 * Further errors: PM_ENOBUFS, PM_EPEER, PM_EINVAL, PM_EMSGSIZE. */
int pm_get_send_buffer(pm_context* context, uint32_t dest, void** buffer, size_t length);

/* Sends the message that pm_get_send_buffer() lent. Returns PM_ENOBUFS if the peer's inbox is full;
 * the buffer then stays lent, and the caller must call pm_send() again. After PM_EPEER the buffer
 * is given back. Returns PM_EINVAL if no buffer is lent. */
int pm_send(pm_context* context);

/* Gives the lent buffer back unsent. Does nothing without one. */
void pm_cancel(pm_context* context);

/* Copies `length` bytes and sends them; waits for a buffer if necessary. Errors: PM_EPEER,
 * PM_EINVAL, PM_EMSGSIZE; PM_EBUSY while a buffer is lent. */
int pm_send_message(pm_context* context, uint32_t dest, const void* data, size_t length);

/* Sends `length` <= pm_mtu() bytes once to each of `count` ranks, in one frame each (since 1.1). A
 * datagram may be lost, duplicated or reordered. It takes a buffer of its receiver until it is
 * released, and is dropped if none is free. Ranks that have died are skipped. Datagrams do not
 * count in messages_sent and messages_received: the scheduler's idle detection does not wait for
 * them. Returns PM_EAGAIN if the device had no room for some of them; the rest was sent. After
 * PM_EINVAL (no such rank) and PM_EMSGSIZE nothing was sent. */
int pm_send_datagram(pm_context* context, const uint32_t* ranks, size_t count, const void* data,
                     size_t length);

#define PM_LARGE 1u    /* pm_message.flags: announced by pm_send_large(), fetch it by pm_fetch() */
#define PM_DATAGRAM 2u /* pm_message.flags: sent by pm_send_datagram() */

typedef struct pm_message {
  uint32_t source;  /* rank */
  uint32_t flags;   /* 0, PM_LARGE or PM_DATAGRAM */
  const void* data; /* the message, until it is released; null if PM_LARGE */
  uint64_t length;
  uint64_t internal[6];
} pm_message;

/* Receives the oldest message. The library lends its buffer. The caller may hold several messages;
 * each takes one of the context's buffers until it is released. A caller that waits for a send
 * buffer or an operation must not hold all buffers: two ranks that do so wait for each other.
 * Returns PM_EAGAIN if there is no message, and PM_EPEER once for each rank message->source that
 * has died.
 *
 * A thread that calls this repeatedly, does nothing else, and finds nothing for PM_POLL_US
 * microseconds sleeps in it from then on. Each sleep lasts a sixteenth of the time that the thread
 * has waited, 50 us to 20 ms (longer where more than 4 ranks share a node); any event ends it. */
int pm_receive(pm_context* context, pm_message* message);

/* Gives a received message's buffer back. */
void pm_release_receive_buffer(pm_context* context, const pm_message* message);

/* --- remote memory ------------------------------------------------------------------------- */

/* A handle names registered memory. It may be sent to other ranks as bytes. */
typedef struct pm_handle {
  uint32_t region;
  uint32_t nonce;
  uint64_t offset;
  uint64_t length;
} pm_handle;

/* A pm_op names a running operation; 0 is none. */
typedef uint32_t pm_op;

/* Pins memory and lets other ranks that have the handle write and read it. The call is cheap if the
 * memory was registered before. Returns ENOSPC if too many regions are registered. */
int pm_register(pm_context* context, void* address, uint64_t length, pm_handle* handle);

/* Ends one registration: the handle is no longer valid. The memory stays pinned until the space is
 * needed. Returns PM_EBUSY while a transfer uses it; the caller must call pm_progress() and try
 * again. */
int pm_deregister(pm_context* context, const pm_handle* handle);

/* Sets the percentage of registrations that may be found pinned, 100 by default, for
 * measurements. */
void pm_set_cache(pm_context* context, unsigned percent);

/* Writes at most 4 GB - 1 of own registered memory into that of rank `dest`. Neither may change
 * until pm_test() reports that `op` has ended. On success the bytes are in place, and messages sent
 * later arrive after them. Errors: PM_ENOBUFS, PM_EPEER, PM_EINVAL. */
int pm_write(pm_context* context, uint32_t dest, const pm_handle* remote, uint64_t remote_offset,
             const pm_handle* local, uint64_t local_offset, uint64_t length, pm_op* op);

/* Reads rank `dest`'s registered memory into own memory; otherwise the same as pm_write(). */
int pm_read(pm_context* context, uint32_t dest, const pm_handle* remote, uint64_t remote_offset,
            const pm_handle* local, uint64_t local_offset, uint64_t length, pm_op* op);

/* Returns PM_EINPROGRESS while `op` runs. Then it returns the result once: PM_SUCCESS, PM_EACCES or
 * PM_EPEER. Returns PM_EINVAL if there is no such operation. Makes no progress by itself. */
int pm_test(pm_context* context, pm_op op);

/* Announces own registered memory to `dest` as one message of any length below 4 GB (rendezvous).
 * It keeps its place among the messages. `op` ends when the receiver has fetched it; the memory
 * must not change until then. */
int pm_send_large(pm_context* context, uint32_t dest, const pm_handle* local, uint64_t local_offset,
                  uint64_t length, pm_op* op);

/* Fetches an announced message into own registered memory. The message may be released at once. */
int pm_fetch(pm_context* context, const pm_message* message, const pm_handle* local,
             uint64_t local_offset, pm_op* op);

/* --- progress and waiting ------------------------------------------------------------------ */

/* Receives, acknowledges and resends frames. Returns 1 if anything happened or a message is
 * waiting, else 0. pm_receive() does the same work. */
int pm_progress(pm_context* context);

/* Waits until there is a message or any other event, but at most `timeout_us` (negative: forever).
 * It polls for a short while, then sleeps. The context counts as idle in the meantime. Returns
 * PM_ETIMEDOUT after the timeout. */
int pm_wait(pm_context* context, int64_t timeout_us);

/* Returns 1 if this rank has nothing in flight: everything that it sent is acknowledged, and
 * everything that arrived is received. Messages received but not released do not count. */
int pm_quiet(const pm_context* context);

/* Returns a descriptor for poll(2), select(2) or epoll(7), valid until pm_close(). The caller may
 * only wait on it. */
int pm_get_fd(const pm_context* context);

/* Arms pm_get_fd(): from now on it becomes readable when there is something to do. The caller may
 * sleep at most `timeout_us` (-1: forever). Returns PM_EBUSY if a message is waiting already; the
 * caller must receive it and call again. */
int pm_before_select(pm_context* context, int64_t* timeout_us);

/* The caller must call this after each sleep. */
void pm_after_select(pm_context* context);

/* pm_idle() states that this rank only waits for messages, in its own loop over pm_receive(), which
 * sleeps after some 200 calls in vain; pm_busy() ends that, and is called before a message is acted
 * upon. The scheduler gives the time of a job to other jobs while all its ranks sleep. pm_wait()
 * and pm_before_select() do both by themselves. */
void pm_idle(pm_context* context);
void pm_busy(pm_context* context);

/* --- save and restore ---------------------------------------------------------------------- */

/* Returns the size of a saved context in bytes. */
size_t pm_context_bytes(const pm_context* context);

/* Copies the whole context into `image`, with all queues, buffers and numbers. All ranks of the job
 * must be stopped, or save together. Returns PM_EBUSY while a send buffer is lent, and ENOSPC if
 * `bytes` is too small. */
int pm_save(const pm_context* context, void* image, size_t bytes);

/* Continues the context from the image, which must be aligned to 64 bytes. Later changes are lost;
 * frames that were in flight are resent. Rank, key and addresses stay those of the context. Returns
 * PM_EINVAL if the image is not a valid one of such a context. */
int pm_restore(pm_context* context, const void* image, size_t bytes);

/* Moves registered memory to `address` after a restore into a different process. */
int pm_rebind(pm_context* context, const pm_handle* handle, void* address);

/* --- information --------------------------------------------------------------------------- */

typedef struct pm_statistics {
  uint64_t messages_sent, messages_received, bytes_sent, bytes_received;
  uint64_t frames_sent, frames_received, frames_resent, time_outs, stops_sent, loses_sent;
  uint64_t dropped_malformed, dropped_foreign, dropped_stale, dropped_corrupt, dropped_strange;
  uint64_t duplicates, denied, rma_bytes_written;
  uint64_t registration_hits, registration_misses;
  uint64_t wakeups, sleeps;
  uint64_t dropped_forged;
  uint64_t dropped_by_kernel; /* udp: frames of other jobs, or no room in the socket */
  /* since 1.1; dropped: no receive buffer was free */
  uint64_t datagrams_sent, datagrams_received, datagrams_dropped;
} pm_statistics;

/* Copies at most `bytes` bytes of the statistics; later versions append fields. */
void pm_get_statistics(const pm_context* context, pm_statistics* statistics, size_t bytes);

/* Returns a short text for a PM_E* number, never null. */
const char* pm_strerror(int error);

/* Returns PM_VERSION_MAJOR << 16 | PM_VERSION_MINOR of the library in use. */
uint32_t pm_version(void);

#ifdef __cplusplus
}
#endif

#endif /* PM_H */
