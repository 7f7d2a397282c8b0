#include "transports/node/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
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

std::byte* map(int file, std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

}  // namespace

std::shared_ptr<Segment> Segment::create(std::size_t bytes) {
  const int file = memfd_create("kplan", MFD_CLOEXEC);
  if (file < 0) fail("cannot make shared memory");
  std::byte* data = ftruncate(file, static_cast<off_t>(bytes)) == 0 ? map(file, bytes) : nullptr;
  if (!data) {
    const int error = errno;
    close(file);
    errno = error;
    fail("cannot make " + std::to_string(bytes) + " bytes of shared memory");
  }
  return std::shared_ptr<Segment>(new Segment(file, data, bytes));
}

std::shared_ptr<Segment> Segment::open(int process, int file, std::size_t bytes) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
  const int own = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) fail("cannot open the shared memory of process " + std::to_string(process));
  std::byte* data = map(own, bytes);
  const int error = errno;
  close(own);
  errno = error;
  if (!data) fail("cannot map the shared memory of process " + std::to_string(process));
  return std::shared_ptr<Segment>(new Segment(-1, data, bytes));
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
