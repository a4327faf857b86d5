/* Defines the file in which the ranks of `progress` count, so that a reader can see when each rank
 * runs. The header serves C and C++. All numbers are native; times are CLOCK_MONOTONIC nanoseconds.
 * Every field has one writer, its rank; readers map the file and load single fields
 * (progress_load).
 *
 *   byte 0                                     struct progress_header
 *   kProgressHeaderBytes + rank * kProgressSlotBytes   struct progress_slot of that rank
 *
 * A run interval is a time without a gap; a gap is a time between two readings of the clock that
 * exceeds the header's threshold. The present interval is [interval_start_ns, last_ns). */
#ifndef SCORED_EXAMPLES_PROGRESS_H
#define SCORED_EXAMPLES_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define kProgressMagic UINT64_C(0x31474f5250435353) /* "SSCPROG1" */
#define kProgressHeaderBytes 4096
#define kProgressRing 1024 /* intervals kept */

struct progress_header {
  uint64_t magic; /* written last: the file is ready */
  uint32_t ranks;
  uint32_t ring; /* kProgressRing */
  uint64_t slot_bytes;
  uint64_t gap_threshold_ns;
};

struct progress_interval {
  uint64_t start_ns;
  uint64_t end_ns;
};

struct progress_slot {
  /* These are written all the time, so they have a cache line of their own. */
  uint64_t counter; /* steps of equal work done */
  uint64_t last_ns; /* last reading of the clock; 0: not started */
  uint8_t padding1[48];
  /* These are written at each gap. */
  uint64_t gaps;
  uint64_t gap_ns; /* their sum */
  uint64_t longest_gap_ns;
  uint64_t interval_start_ns; /* of the present interval */
  uint64_t intervals;         /* finished; the last is ring[(intervals - 1) % kProgressRing] */
  uint64_t first_ns;          /* when the rank started to count */
  uint64_t pid;
  uint64_t is_done; /* 1: the rank has ended normally */
  struct progress_interval ring[kProgressRing];
};

#define kProgressSlotBytes ((uint64_t)sizeof(struct progress_slot))

static inline uint64_t progress_file_bytes(uint32_t ranks) {
  return kProgressHeaderBytes + ranks * kProgressSlotBytes;
}

static inline uint64_t progress_load(const uint64_t* field) {
  return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

static inline void progress_store(uint64_t* field, uint64_t value) {
  __atomic_store_n(field, value, __ATOMIC_RELEASE);
}

/* Returns the slot of a rank in a mapped file. */
static inline struct progress_slot* progress_slot_of(void* file, uint32_t rank) {
  return (struct progress_slot*)(void*)((char*)file + kProgressHeaderBytes +
                                        rank * kProgressSlotBytes);
}

#ifdef __cplusplus
}
#endif

#endif
