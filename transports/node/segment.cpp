#include "transports/node/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "kplan/error.hpp"
#include "transports/codes.hpp"
#include "transports/shared/huge_pages.hpp"

namespace kplan::transport::node_path {
namespace {

[[noreturn]] void fail(const std::string& what) {
  const bool is_for_files = errno == EMFILE || errno == ENFILE, is_for_memory = errno == ENOMEM;
  const std::string reason = std::strerror(errno);
  throw TransportError(
      codes::cannot_open,
      what + ": " + reason +
          (is_for_files    ? "; raise the limit of open files (ulimit -n), or make fewer arrays by "
                             "Engine::allocate"
           : is_for_memory ? "; the system has not so much left, or no more mappings (vm.max_map_count)"
                           : "; KPLAN_NODE=off does without shared memory"));
}

/// Null, and errno, where that fails. What is long lies so that huge pages can be mapped as such.
std::byte* map(int file, std::size_t bytes, bool is_written) {
  const int access = is_written ? PROT_READ | PROT_WRITE : PROT_READ;
  if (bytes >= least_for_huge_pages) {
    void* const room =
        mmap(nullptr, bytes + huge_page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return nullptr;
    const auto begin = reinterpret_cast<std::uintptr_t>(room), page = static_cast<std::uintptr_t>(getpagesize());
    const std::uintptr_t first = (begin + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    const std::uintptr_t end = (first + bytes + page - 1) / page * page, room_end = begin + bytes + huge_page_bytes;
    auto* const data = reinterpret_cast<std::byte*>(first);
    if (mmap(data, bytes, access, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
      const int error = errno;
      munmap(room, bytes + huge_page_bytes);
      errno = error;
      return nullptr;
    }
    if (first > begin) munmap(room, first - begin);
    if (end < room_end) munmap(reinterpret_cast<void*>(end), room_end - end);
    return data;
  }
  void* data = mmap(nullptr, bytes, access, MAP_SHARED, file, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

/// Puts set-aside memory together in huge pages, where it is long and the kernel can (Linux 6.1). Most systems give
/// shared memory none otherwise, and strided loops over long arrays are up to twice as fast with them.
void make_huge(std::byte* data, std::size_t bytes) {
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
  if (bytes >= least_for_huge_pages) (void)madvise(data, bytes, MADV_COLLAPSE);
}

/// How much memory the system can still give away; no limit where it does not say.
std::size_t available_bytes() {
  std::ifstream about("/proc/meminfo");
  std::size_t left = 0, kibibytes = 0;
  bool is_known = false;
  for (std::string name, unit; about >> name >> kibibytes && std::getline(about, unit);) {
    is_known = is_known || name == "MemAvailable:";
    if (name == "MemAvailable:" || name == "SwapFree:") left += kibibytes << 10;
  }
  return is_known ? left : std::numeric_limits<std::size_t>::max();
}

/// Gives the file its size, and memory at once where that is wanted. Sets errno where it cannot.
bool size_file(int file, std::size_t bytes, bool is_reserved) {
  // fallocate would take what there is page by page, and the system end processes then, this one or others.
  if (is_reserved && bytes > available_bytes()) {
    errno = ENOMEM;
    return false;
  }
  // What goes beyond the limit on the size of files (ulimit -f) ends the process.
  rlimit largest{};
  if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && bytes > largest.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  if (!is_reserved) return ftruncate(file, static_cast<off_t>(bytes)) == 0;
  return fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0;
}

}  // namespace

std::shared_ptr<Segment> Segment::make(std::size_t bytes, bool is_reserved) {
  const int file = memfd_create("kplan", MFD_CLOEXEC);
  if (file < 0) fail("cannot make shared memory");
  std::byte* data = size_file(file, bytes, is_reserved) ? map(file, bytes, /*is_written=*/true) : nullptr;
  if (!data) {
    const int error = errno;
    close(file);
    errno = error;
    fail("cannot make " + std::to_string(bytes) + " bytes of shared memory");
  }
  if (is_reserved) make_huge(data, bytes);
  return std::shared_ptr<Segment>(new Segment(file, data, bytes));
}

std::shared_ptr<Segment> Segment::create(std::size_t bytes) { return make(bytes, /*is_reserved=*/false); }
std::shared_ptr<Segment> Segment::reserve(std::size_t bytes) { return make(bytes, /*is_reserved=*/true); }

/// `bytes` 0: all that there are.
std::shared_ptr<Segment> Segment::map_file(int process, int file, std::size_t bytes, bool is_written) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
  const int own = ::open(path.c_str(), (is_written ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (own < 0) fail("cannot open the shared memory of process " + std::to_string(process));
  struct stat about {};
  if (bytes == 0 && fstat(own, &about) == 0) bytes = static_cast<std::size_t>(about.st_size);
  std::byte* data = map(own, bytes, is_written);
  const int error = errno;
  close(own);
  errno = error;
  if (!data) fail("cannot map the shared memory of process " + std::to_string(process));
  return std::shared_ptr<Segment>(new Segment(-1, data, bytes));
}

std::shared_ptr<Segment> Segment::open(int process, int file, std::size_t bytes) {
  return map_file(process, file, bytes, /*is_written=*/true);
}

std::shared_ptr<Segment> Segment::open_to_read(int process, int file) {
  return map_file(process, file, 0, /*is_written=*/false);
}

Segment::~Segment() {
  close_file();
  munmap(data_, bytes_);
}

void Segment::close_file() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

}  // namespace kplan::transport::node_path
