#include "tools/kplan/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "kplan/error.hpp"

namespace kplan::cli {
namespace {

[[noreturn]] void fail(int error) {
  throw Error("KP-L016", fmt::format("the output cannot be written: {}", std::strerror(error)));
}

}  // namespace

void hold_standard_streams() {
  // The lowest free number is the one that open takes.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) == -1 && open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY) == -1) return;
}

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail(errno);
}

void flush_output() {
  if (std::fflush(stdout) != 0) fail(errno);
}

}  // namespace kplan::cli
