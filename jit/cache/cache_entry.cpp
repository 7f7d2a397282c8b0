// How it works: a header with the lengths and a hash of all that follows; then the key; then the image. The hash finds
// damage; the key, compared in full, finds two keys of one file name.
#include "jit/cache/cache_entry.hpp"

#include <cstring>

#include "plans/hash.hpp"

namespace kplan::jit {
namespace {

struct EntryHeader {
  char magic[8] = {'k', 'p', 'l', 'a', 'n', 'k', '0', '1'};
  std::uint32_t key_bytes = 0, image_bytes = 0;
  std::uint64_t hash = 0;
};

}  // namespace

std::vector<std::byte> write_entry(std::string_view key, std::span<const std::byte> image) {
  EntryHeader header;
  header.key_bytes = static_cast<std::uint32_t>(key.size());
  header.image_bytes = static_cast<std::uint32_t>(image.size());
  std::vector<std::byte> out(sizeof header + key.size() + image.size());
  std::memcpy(out.data() + sizeof header, key.data(), key.size());
  std::memcpy(out.data() + sizeof header + key.size(), image.data(), image.size());
  header.hash = hash64(std::span(out).subspan(sizeof header));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

std::optional<std::span<const std::byte>> read_entry(std::span<const std::byte> file, std::string_view key) {
  const EntryHeader expected;
  EntryHeader header;
  if (file.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof header);
  const auto rest = file.subspan(sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.key_bytes != key.size() ||
      std::uint64_t(header.key_bytes) + header.image_bytes != rest.size() || header.hash != hash64(rest) ||
      std::memcmp(rest.data(), key.data(), key.size()) != 0)
    return std::nullopt;
  return rest.subspan(key.size());
}

}  // namespace kplan::jit
