/* Runs a PM job that waits most of the time, for scbench gang --idle: scbench-waiter
 * [wait|receive|idle]
 *
 * All ranks wait for messages; rank 0 also waits for lines "AT_NS WORK_NS" of its input. After a
 * line it waits until that time of the monotonic clock (0: no wait), prints the time, has all ranks
 * work that long, and prints the time when the last rank has answered. The program ends at the end
 * of the input. Ranks wait in pm_wait(), in a loop over pm_receive(), or in a loop that calls
 * pm_idle() as well. In the last two modes rank 0 sleeps until its time, because only a message
 * ends a rest in pm_receive() at once. */
#include <inttypes.h>
#include <pm.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THE_END (-1)
#define NS_PER_S INT64_C(1000000000)
#define LINE_BYTES 128

static enum { WAIT, RECEIVE, IDLE } way = WAIT;

static void check(int error, const char* what) {
  if (error == PM_SUCCESS) return;
  fprintf(stderr, "scbench-waiter: %s: %s\n", what, pm_strerror(error));
  exit(1);
}

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * NS_PER_S + (int64_t)time.tv_nsec;
}

static void say(pm_context* pm, uint32_t to, int64_t number) {
  void* buffer;
  int error;
  while ((error = pm_get_send_buffer(pm, to, &buffer, sizeof number)) == PM_ENOBUFS)
    pm_progress(pm);
  check(error, "pm_get_send_buffer");
  memcpy(buffer, &number, sizeof number);
  while ((error = pm_send(pm)) == PM_ENOBUFS) pm_progress(pm);
  check(error, "pm_send");
}

/* Makes one step of waiting for a message. */
static void wait_a_step(pm_context* pm) {
  if (way == WAIT) pm_wait(pm, -1);
  if (way == IDLE) pm_idle(pm);
}

static int64_t hear(pm_context* pm) {
  pm_message message;
  int64_t number;
  int error;
  while ((error = pm_receive(pm, &message)) == PM_EAGAIN) wait_a_step(pm);
  check(error, "pm_receive");
  if (way == IDLE) pm_busy(pm);
  memcpy(&number, message.data, sizeof number);
  pm_release_receive_buffer(pm, &message);
  return number;
}

static void work(int64_t length_ns) {
  const int64_t end = now_ns() + length_ns;
  while (now_ns() < end) continue;
}

/* Sleeps until there is input or a message. */
static void wait_for_input(pm_context* pm) {
  struct pollfd both[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = pm_get_fd(pm), .events = POLLIN}};
  do {
    int64_t most_us = -1;
    pm_progress(pm);
    if (pm_before_select(pm, &most_us) != PM_SUCCESS) continue;
    poll(both, 2, most_us < 0 ? -1 : (int)(most_us / 1000) + 1);
    pm_after_select(pm);
  } while (both[0].revents == 0);
}

/* Returns 1 for a line, 0 at the end of the input. */
static int read_line(char* line) {
  size_t length = 0;
  while (length + 1 < LINE_BYTES && read(STDIN_FILENO, line + length, 1) == 1) {
    if (line[length] == '\n') {
      line[length] = '\0';
      return 1;
    }
    ++length;
  }
  return 0;
}

static void tell_time(void) {
  printf("%" PRId64 "\n", now_ns());
  fflush(stdout);
}

static void wait_until(pm_context* pm, int64_t at) {
  while (now_ns() < at) {
    const int64_t left_ns = at - now_ns();
    const struct timespec left = {left_ns / NS_PER_S, left_ns % NS_PER_S};
    if (way != WAIT && left_ns > 0) nanosleep(&left, NULL);
    if (way == WAIT) pm_wait(pm, left_ns / 1000 + 1);
  }
}

static void lead(pm_context* pm) {
  char line[LINE_BYTES];
  uint32_t rank;
  for (wait_for_input(pm); read_line(line); wait_for_input(pm)) {
    char* rest;
    const int64_t at = strtoll(line, &rest, 10);
    const int64_t length = strtoll(rest, NULL, 10);
    wait_until(pm, at);
    tell_time();
    for (rank = 1; rank < pm_size(pm); ++rank) say(pm, rank, length);
    work(length);
    for (rank = 1; rank < pm_size(pm); ++rank) hear(pm);
    tell_time();
  }
  for (rank = 1; rank < pm_size(pm); ++rank) say(pm, rank, THE_END);
}

static void follow(pm_context* pm) {
  int64_t length;
  while ((length = hear(pm)) != THE_END) {
    work(length);
    say(pm, 0, length);
  }
}

int main(int argc, char** argv) {
  pm_context* pm;
  if (argc > 1 && strcmp(argv[1], "receive") == 0) way = RECEIVE;
  if (argc > 1 && strcmp(argv[1], "idle") == 0) way = IDLE;
  check(pm_open(&pm), "pm_open");
  if (pm_self(pm) == 0) {
    lead(pm);
  } else {
    follow(pm);
  }
  pm_close(pm);
  return 0;
}
