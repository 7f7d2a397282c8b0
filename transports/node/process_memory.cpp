#include "transports/node/process_memory.hpp"

#include <sys/uio.h>

namespace kplan::transport::node_path {

bool copy_from_process(int process, const std::byte* theirs, std::byte* to, std::size_t bytes) {
  while (bytes > 0) {
    const iovec mine{to, bytes}, source{const_cast<std::byte*>(theirs), bytes};  // which is only read
    const ssize_t copied = process_vm_readv(process, &mine, 1, &source, 1, 0);
    if (copied <= 0) return false;
    theirs += copied;
    to += copied;
    bytes -= static_cast<std::size_t>(copied);
  }
  return true;
}

}  // namespace kplan::transport::node_path
