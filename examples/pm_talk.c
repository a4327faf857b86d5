/* Ranks send numbered messages around a ring and check each one that arrives: pm_talk SECONDS [JOB]
 *
 * Every message carries JOB, its sender and its number. If a message is missing, duplicated, out of
 * order or from a different job, the program exits with 1. The last message of a rank is marked as
 * such. */
#include <pm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BURST 16

struct note {
  uint64_t job, number;
  uint32_t source, is_last;
  unsigned char filler[96];
};

static uint64_t job, sent, received;
static int is_told, is_done;

static void fail(const char* what, const char* why) {
  fprintf(stderr, "pm_talk: %s: %s\n", what, why);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Returns 1 if the message was sent, 0 if there is no room now. */
static int say(pm_context* pm, int is_last) {
  const uint32_t next = (pm_self(pm) + 1) % pm_size(pm);
  struct note* note;
  void* buffer;
  int error = pm_get_send_buffer(pm, next, &buffer, sizeof *note);
  if (error == PM_ENOBUFS) return 0;
  if (error != PM_SUCCESS) fail("pm_get_send_buffer", pm_strerror(error));
  note = buffer;
  memset(note, (int)(sent & 0xff), sizeof *note);
  note->job = job;
  note->number = sent;
  note->source = pm_self(pm);
  note->is_last = is_last ? 1 : 0;
  error = pm_send(pm);
  if (error == PM_ENOBUFS) {
    pm_cancel(pm);
    return 0;
  }
  if (error != PM_SUCCESS) fail("pm_send", pm_strerror(error));
  ++sent;
  return 1;
}

/* Returns 1 if a message arrived. */
static int hear(pm_context* pm) {
  const uint32_t before = (pm_self(pm) + pm_size(pm) - 1) % pm_size(pm);
  struct note note;
  pm_message message;
  const int error = pm_receive(pm, &message);
  if (error == PM_EAGAIN) return 0;
  if (error != PM_SUCCESS) fail("pm_receive", pm_strerror(error));
  if (message.length != sizeof note) fail("check", "a message has a different length");
  memcpy(&note, message.data, sizeof note);
  pm_release_receive_buffer(pm, &message);
  if (note.job != job) fail("check", "a message belongs to a different job");
  if (note.source != before || message.source != before)
    fail("check", "a message has an unexpected sender");
  if (note.number != received) fail("check", "a message is missing, duplicated or out of order");
  if (note.filler[95] != (note.number & 0xff)) fail("check", "a message is damaged");
  ++received;
  is_done = note.is_last != 0;
  return 1;
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 1;
  const char* own = getenv("SCORE_JOBID");
  pm_statistics statistics;
  pm_context* pm;
  double end;
  int error = pm_open(&pm);

  if (error != PM_SUCCESS) fail("pm_open", pm_strerror(error));
  job = strtoull(argc > 2 ? argv[2] : own != NULL ? own : "0", NULL, 10);
  end = now() + seconds;
  while (!is_told || !is_done) {
    int moved = 0, i;
    for (i = 0; i < BURST && !is_told && now() < end && say(pm, 0); ++i) moved = 1;
    if (!is_told && now() >= end && say(pm, 1)) is_told = moved = 1;
    while (!is_done && hear(pm)) moved = 1;
    if (!moved) pm_wait(pm, 1000);
  }
  for (end = now() + 10; now() < end && !pm_quiet(pm);) pm_wait(pm, 1000);
  memset(&statistics, 0, sizeof statistics);
  pm_get_statistics(pm, &statistics, sizeof statistics);
  printf(
      "rank %u: %llu sent, %llu received, resent %llu, time-outs %llu, foreign %llu, "
      "forged %llu, by the kernel %llu: correct\n",
      pm_self(pm), (unsigned long long)sent, (unsigned long long)received,
      (unsigned long long)statistics.frames_resent, (unsigned long long)statistics.time_outs,
      (unsigned long long)statistics.dropped_foreign, (unsigned long long)statistics.dropped_forged,
      (unsigned long long)statistics.dropped_by_kernel);
  pm_close(pm);
  return 0;
}
