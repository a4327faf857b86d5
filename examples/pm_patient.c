/* Makes ranks wait for each other: pm_patient [SECONDS]
 *
 * Without SECONDS each rank waits for a message that no rank sends. The scheduler detects this
 * deadlock. With SECONDS, rank 0 sleeps that long before it sends a message to each other rank. */
#include <pm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(int error, const char* what) {
  if (error == PM_SUCCESS) return;
  fprintf(stderr, "pm_patient: %s: %s\n", what, pm_strerror(error));
  exit(1);
}

static void wake_others(pm_context* pm) {
  uint32_t rank;
  for (rank = 1; rank < pm_size(pm); ++rank) {
    void* buffer;
    int error;
    while ((error = pm_get_send_buffer(pm, rank, &buffer, 8)) == PM_ENOBUFS) pm_progress(pm);
    check(error, "pm_get_send_buffer");
    memset(buffer, 0, 8);
    while ((error = pm_send(pm)) == PM_ENOBUFS) pm_progress(pm);
    check(error, "pm_send");
  }
}

int main(int argc, char** argv) {
  pm_context* pm;
  pm_message message;
  int error;

  check(pm_open(&pm), "pm_open");
  if (argc > 1 && pm_self(pm) == 0) {
    sleep((unsigned)atoi(argv[1]));
    wake_others(pm);
  } else {
    while ((error = pm_receive(pm, &message)) == PM_EAGAIN) pm_wait(pm, -1);
    check(error, "pm_receive");
    pm_release_receive_buffer(pm, &message);
  }
  pm_close(pm);
  return 0;
}
