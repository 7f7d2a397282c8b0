#include "transports/node/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "kplan/error.hpp"
#include "transports/codes.hpp"

namespace kplan::transport::node_path {
namespace {

[[noreturn]] void fail(const std::string& what) {
  const std::string reason = std::strerror(errno);
  throw TransportError(codes::cannot_open, what + ": " + reason + "; KPLAN_NODE=off does without shared memory");
}

std::byte* map(int file, std::size_t bytes, bool is_written) {
  void* data = mmap(nullptr, bytes, is_written ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

/// Gives the file its size, and memory at once where that is wanted. Sets errno where it cannot.
bool size_file(int file, std::size_t bytes, bool is_reserved) {
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
