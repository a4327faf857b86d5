/* Runs a PM job that computes and is blocked in turns, for scbench gang --fill; see phases.h. */
#include "phases.h"

#include <pm.h>

static void check(int error, const char* what) {
  if (error == PM_SUCCESS) return;
  fprintf(stderr, "scbench-phases: %s: %s\n", what, pm_strerror(error));
  exit(1);
}

static void say(pm_context* pm, uint32_t to) {
  void* buffer;
  int error;
  while ((error = pm_get_send_buffer(pm, to, &buffer, 1)) == PM_ENOBUFS) pm_progress(pm);
  check(error, "pm_get_send_buffer");
  memset(buffer, 0, 1);
  while ((error = pm_send(pm)) == PM_ENOBUFS) pm_progress(pm);
  check(error, "pm_send");
}

static void hear(pm_context* pm) {
  pm_message message;
  int error;
  while ((error = pm_receive(pm, &message)) == PM_EAGAIN) pm_wait(pm, -1);
  check(error, "pm_receive");
  pm_release_receive_buffer(pm, &message);
}

static void piece(struct phases* phases, pm_context* pm) {
  const uint32_t self = pm_self(pm), size = pm_size(pm);
  uint32_t rank;
  if (phases->kind != PHASES_SERIAL) {
    phases_work(phases);
    phases_block(phases);
    if (phases->kind != PHASES_MESSAGES) return;
    say(pm, (self + 1) % size);
    hear(pm);
    return;
  }
  if (self == 0) {
    phases_block(phases);
    phases_work(phases);
    for (rank = 1; rank < size; ++rank) say(pm, rank);
    phases_work(phases);
    for (rank = 1; rank < size; ++rank) hear(pm);
  } else {
    hear(pm);
    phases_work(phases);
    say(pm, 0);
  }
}

int main(int argc, char** argv) {
  struct phases phases = phases_options(argc, argv);
  pm_context* pm;
  int64_t i;
  check(pm_open(&pm), "pm_open");
  phases_await_start(&phases, (int)pm_self(pm));
  for (i = 0; i < phases.pieces; ++i) piece(&phases, pm);
  phases_tell_end();
  pm_close(pm);
  return 0;
}
