/* What scbench-phases and its MPI twin share: options, work, blocking, times.
 *
 * All ranks begin at AT on the monotonic clock (busy until then, so that their job has its place in
 * the timetable) and go through PIECES pieces. A unit of work is a fixed amount of computing, so a
 * processor that is shared or taken away makes it longer.
 *
 *   alone     work, block
 *   messages  work, block, exchange a message with the next rank
 *   serial    rank 0 blocks and works while the others wait for it; then all work
 *
 * Blocking is a sleep, or reading a file past the page cache, for BLOCK_NS. */
#ifndef SCORE_BENCH_GANG_PHASES_H
#define SCORE_BENCH_GANG_PHASES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES 65536
#define NS_PER_S INT64_C(1000000000)

enum phases_kind { PHASES_ALONE, PHASES_MESSAGES, PHASES_SERIAL };

struct phases {
  enum phases_kind kind;
  int64_t at_ns;
  int64_t units; /* of work in each piece */
  int64_t block_ns;
  int64_t pieces;
  int file; /* -1: sleep instead */
  void* buffer;
  off_t position;
};

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * NS_PER_S + (int64_t)time.tv_nsec;
}

static volatile uint64_t phases_sink;

static void phases_work(int64_t units) {
  uint64_t value = phases_sink | 1;
  int64_t i;
  for (i = 0; i < units * 1000; ++i) value = value * UINT64_C(6364136223846793005) + 1442695;
  phases_sink = value;
}

/* Units of work in a millisecond: the most of several tries, each of which may be disturbed. */
static int64_t phases_calibrate(void) {
  int64_t most = 0;
  int try_;
  for (try_ = 0; try_ < 50; ++try_) {
    const int64_t units = 1000;
    const int64_t begin = now_ns();
    int64_t per_ms;
    phases_work(units);
    per_ms = units * 1000000 / (now_ns() - begin + 1);
    if (per_ms > most) most = per_ms;
  }
  return most;
}

static void phases_sleep(int64_t length_ns) {
  const struct timespec length = {.tv_sec = length_ns / NS_PER_S, .tv_nsec = length_ns % NS_PER_S};
  nanosleep(&length, NULL);
}

static void phases_block(struct phases* phases) {
  const int64_t end = now_ns() + phases->block_ns;
  if (phases->file < 0) {
    phases_sleep(phases->block_ns);
    return;
  }
  while (now_ns() < end) {
    if (pread(phases->file, phases->buffer, READ_BYTES, phases->position) == READ_BYTES) {
      phases->position += READ_BYTES;
    } else {
      phases->position = 0;
    }
  }
}

static void phases_wrong(void) {
  fprintf(stderr, "usage: KIND AT_NS UNITS BLOCK_NS PIECES [FILE], or --calibrate\n");
  exit(2);
}

static void phases_open(struct phases* phases, const char* path) {
  phases->file = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (phases->file < 0) phases->file = open(path, O_RDONLY | O_CLOEXEC); /* as on tmpfs */
  if (phases->file >= 0 && posix_memalign(&phases->buffer, 4096, READ_BYTES) == 0) return;
  perror(path);
  exit(1);
}

static struct phases phases_read(int argc, char** argv) {
  struct phases phases = {.file = -1};
  if (argc == 2 && strcmp(argv[1], "--calibrate") == 0) {
    printf("%" PRId64 "\n", phases_calibrate());
    exit(0);
  }
  if (argc < 6 || argc > 7) phases_wrong();
  if (strcmp(argv[1], "messages") == 0) {
    phases.kind = PHASES_MESSAGES;
  } else if (strcmp(argv[1], "serial") == 0) {
    phases.kind = PHASES_SERIAL;
  } else if (strcmp(argv[1], "alone") != 0) {
    phases_wrong();
  }
  phases.at_ns = strtoll(argv[2], NULL, 10);
  phases.units = strtoll(argv[3], NULL, 10);
  phases.block_ns = strtoll(argv[4], NULL, 10);
  phases.pieces = strtoll(argv[5], NULL, 10);
  if (argc == 7) phases_open(&phases, argv[6]);
  return phases;
}

static void phases_await_start(const struct phases* phases) {
  while (now_ns() < phases->at_ns) continue;
}

/* When this rank was done: the output of the program. */
static void phases_tell_end(void) {
  printf("%" PRId64 "\n", now_ns());
  fflush(stdout);
}

#endif
