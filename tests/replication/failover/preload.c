/* What a node's disk and wall clock do, decided by another process: loaded before the C library
 * (LD_PRELOAD) and told by the file that SEMEL_FAULTS names, which both have mapped.
 *
 *   bytes 0..7    added to CLOCK_REALTIME, in nanoseconds
 *   bytes 8..15   every sync takes longer by so many nanoseconds
 *   bytes 16..23  so many of the next syncs of data (fdatasync, msync) fail with EIO, and do not
 *                 reach the disk; those after them succeed, as on Linux
 *   bytes 24..31  the same for fsync, which is of files and names that are new
 *   bytes 32..39  syncs that have failed so far
 *   bytes 40..47  boots of its machine: to a process that starts later it is another one
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct faults {
  _Atomic int64_t wall_offset_ns;
  _Atomic int64_t sync_delay_ns;
  _Atomic int64_t syncs_to_fail;
  _Atomic int64_t fsyncs_to_fail;
  _Atomic int64_t syncs_failed;
  _Atomic int64_t boots;
};

static struct faults none;
static struct faults* faults = &none;

__attribute__((constructor)) static void map_faults(void) {
  const char* path = getenv("SEMEL_FAULTS");
  if (path == NULL) return;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) _exit(99);
  void* mapped = mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) _exit(99);
  faults = mapped;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  if (syscall(SYS_clock_gettime, clock, time) != 0) return -1;
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return 0;
  const int64_t offset = atomic_load(&faults->wall_offset_ns);
  int64_t nanoseconds = time->tv_nsec + offset % 1000000000;
  time->tv_sec += offset / 1000000000;
  if (nanoseconds < 0) {
    nanoseconds += 1000000000;
    --time->tv_sec;
  } else if (nanoseconds >= 1000000000) {
    nanoseconds -= 1000000000;
    ++time->tv_sec;
  }
  time->tv_nsec = nanoseconds;
  return 0;
}

int gettimeofday(struct timeval* restrict at, void* restrict zone) {
  (void)zone;
  struct timespec time;
  if (clock_gettime(CLOCK_REALTIME, &time) != 0) return -1;
  at->tv_sec = time.tv_sec;
  at->tv_usec = time.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* at) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}

/* Whether this sync is to fail. It is slow before it fails. */
static int fails(_Atomic int64_t* left_to_fail) {
  int64_t delay = atomic_load(&faults->sync_delay_ns);
  struct timespec left = {delay / 1000000000, delay % 1000000000};
  while (delay > 0 && syscall(SYS_nanosleep, &left, &left) != 0) {
  }
  int64_t count = atomic_load(left_to_fail);
  while (count > 0) {
    if (!atomic_compare_exchange_weak(left_to_fail, &count, count - 1)) continue;
    atomic_fetch_add(&faults->syncs_failed, 1);
    errno = EIO;
    return 1;
  }
  return 0;
}

int fdatasync(int file) {
  return fails(&faults->syncs_to_fail) ? -1 : (int)syscall(SYS_fdatasync, file);
}

int fsync(int file) {
  return fails(&faults->fsyncs_to_fail) ? -1 : (int)syscall(SYS_fsync, file);
}

int msync(void* memory, size_t bytes, int flags) {
  if ((flags & MS_SYNC) != 0 && fails(&faults->syncs_to_fail)) return -1;
  return (int)syscall(SYS_msync, memory, bytes, flags);
}

/* A boot is known by its id and by the namespace of its clocks. */
ssize_t readlink(const char* restrict path, char* restrict text, size_t bytes) {
  const int64_t boots = atomic_load(&faults->boots);
  if (boots == 0 || strcmp(path, "/proc/self/ns/time") != 0) {
    return syscall(SYS_readlinkat, AT_FDCWD, path, text, bytes);
  }
  char name[40];
  const size_t length = (size_t)snprintf(name, sizeof name, "boot:[%lld]", (long long)boots);
  const size_t taken = length < bytes ? length : bytes;
  memcpy(text, name, taken);
  return (ssize_t)taken;
}
