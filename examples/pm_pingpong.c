/* Measures the round-trip time between ranks 0 and 1: pm_pingpong [ROUNDS [BYTES]]
 *
 * Without scored, run both ranks by hand:
 *   PM_ADDRESS_FILE=job PM_RANK=1 ./pm_pingpong & PM_ADDRESS_FILE=job PM_RANK=0 ./pm_pingpong */
#include <pm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(int error, const char* what) {
  if (error == PM_SUCCESS) return;
  fprintf(stderr, "pm_pingpong: %s: %s\n", what, pm_strerror(error));
  exit(1);
}

static void send_ball(pm_context* pm, uint32_t dest, int number, size_t bytes) {
  void* buffer;
  int error;
  while ((error = pm_get_send_buffer(pm, dest, &buffer, bytes)) == PM_ENOBUFS) pm_progress(pm);
  check(error, "pm_get_send_buffer");
  memset(buffer, 0, bytes); /* the message is built in place */
  memcpy(buffer, &number, sizeof number);
  while ((error = pm_send(pm)) == PM_ENOBUFS) pm_progress(pm);
  check(error, "pm_send");
}

static void take_ball(pm_context* pm, int expected) {
  pm_message message;
  int error, number;
  while ((error = pm_receive(pm, &message)) == PM_EAGAIN) pm_wait(pm, -1);
  check(error, "pm_receive");
  memcpy(&number, message.data, sizeof number);
  pm_release_receive_buffer(pm, &message);
  if (number != expected) {
    fprintf(stderr, "pm_pingpong: ball %d instead of %d\n", number, expected);
    exit(1);
  }
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
  const size_t bytes = argc > 2 ? (size_t)atoi(argv[2]) : sizeof(int);
  struct timespec start, end;
  pm_context* pm;
  int i;

  check(pm_open(&pm), "pm_open");
  if (pm_size(pm) < 2 || bytes < sizeof(int) || bytes > pm_mtu(pm, 1 - pm_self(pm) % 2)) {
    fprintf(stderr, "usage: pm_pingpong [ROUNDS [BYTES]], with at least two ranks\n");
    return 2;
  }
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (i = 0; i < rounds && pm_self(pm) < 2; ++i) {
    if (pm_self(pm) == 0) send_ball(pm, 1, i, bytes);
    take_ball(pm, i);
    if (pm_self(pm) == 1) send_ball(pm, 0, i, bytes);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (pm_self(pm) == 0) {
    const double us =
        (double)(end.tv_sec - start.tv_sec) * 1e6 + (double)(end.tv_nsec - start.tv_nsec) / 1e3;
    printf("%zu bytes: %.2f us per round trip\n", bytes, us / rounds);
  }
  for (i = 0; i < 100000 && !pm_quiet(pm); ++i) pm_progress(pm);
  pm_close(pm);
  return 0;
}
