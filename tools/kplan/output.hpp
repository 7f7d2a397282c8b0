#pragma once
// What the commands say on stdout. A write that fails ends the command, at once where much is written.

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace kplan::cli {

/// Takes the numbers of standard streams that are closed, so that no file that is opened later is taken for one;
/// writing to a stdout that was closed fails.
void hold_standard_streams();

/// Writes, mostly into a buffer. Throws Error KP-L016 where the output cannot be written.
void write_output(std::string_view text);

/// Hands over what is in the buffer, and throws likewise.
void flush_output();

template <class... Values>
void print(fmt::format_string<Values...> form, Values&&... values) {
  write_output(fmt::format(form, std::forward<Values>(values)...));
}

}  // namespace kplan::cli
