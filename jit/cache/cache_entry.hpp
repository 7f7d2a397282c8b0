#pragma once
// The contents of one file of the disk cache.

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kplan::jit {

/// The file that holds the image under the key.
std::vector<std::byte> write_entry(std::string_view key, std::span<const std::byte> image);

/// The image in a file; nothing when the file is damaged, of another format, or of another key.
std::optional<std::span<const std::byte>> read_entry(std::span<const std::byte> file, std::string_view key);

}  // namespace kplan::jit
