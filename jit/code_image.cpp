// How it works: all numbers are 32 bits in the machine's order: an image is never taken to another machine. Reading
// checks every number against the bytes there are, so that placing need not.
#include "jit/code_image.hpp"

#include <bit>
#include <cstring>

#include "jit/long_copy.hpp"

namespace kplan::jit {
namespace {

struct ImageHeader {
  std::uint32_t magic = 0x31494b4b;  // KKI1
  std::uint32_t alignment, entry, calls, pointers, code_bytes;
};

constexpr std::size_t pointer_bytes = 8;

/// For memcpy what is faster.
const void* library_address(std::uint32_t function) {
  static const void* const addresses[] = {reinterpret_cast<const void*>(&copy_long),
                                          reinterpret_cast<const void*>(&std::memmove),
                                          reinterpret_cast<const void*>(&std::memset)};
  static_assert(std::size(addresses) == std::size(library_functions));
  return addresses[function];
}

template <class T>
T get(std::span<const std::byte> bytes, std::size_t index) {
  T out;
  std::memcpy(&out, bytes.data() + index * sizeof(T), sizeof(T));
  return out;
}

template <class T>
void append(std::vector<std::byte>& out, std::span<const T> what) {
  const auto bytes = std::as_bytes(what);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::optional<CodeImage> CodeImage::read(std::span<const std::byte> bytes) {
  ImageHeader header;
  const std::uint32_t magic = header.magic;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::uint64_t calls = std::uint64_t(header.calls) * sizeof(Call);
  const std::uint64_t pointers = std::uint64_t(header.pointers) * sizeof(std::uint32_t);
  if (header.magic != magic || !std::has_single_bit(header.alignment) || header.alignment > 4096 ||
      header.entry >= header.code_bytes || sizeof header + calls + pointers + header.code_bytes != bytes.size())
    return std::nullopt;
  CodeImage out;
  out.alignment_ = header.alignment;
  out.entry_ = header.entry;
  out.calls_ = bytes.subspan(sizeof header, calls);
  out.pointers_ = bytes.subspan(sizeof header + calls, pointers);
  out.code_ = bytes.subspan(sizeof header + calls + pointers);
  const auto fits = [&](std::uint32_t at) { return at + pointer_bytes <= out.code_.size(); };
  for (std::size_t i = 0; i < header.calls; ++i) {
    const Call call = get<Call>(out.calls_, i);
    if (!fits(call.at) || call.function >= std::size(library_functions)) return std::nullopt;
  }
  for (std::size_t i = 0; i < header.pointers; ++i) {
    if (!fits(get<std::uint32_t>(out.pointers_, i))) return std::nullopt;
  }
  return out;
}

std::vector<std::byte> CodeImage::write(std::span<const std::byte> code, std::uint32_t alignment, std::uint32_t entry,
                                        std::span<const Call> calls, std::span<const std::uint32_t> pointers) {
  ImageHeader header;
  header.alignment = alignment;
  header.entry = entry;
  header.calls = static_cast<std::uint32_t>(calls.size());
  header.pointers = static_cast<std::uint32_t>(pointers.size());
  header.code_bytes = static_cast<std::uint32_t>(code.size());
  std::vector<std::byte> out;
  append(out, std::span<const ImageHeader>(&header, 1));
  append(out, calls);
  append(out, pointers);
  append(out, code);
  return out;
}

void CodeImage::place(std::byte* to, const std::byte* at) const {
  std::memcpy(to, code_.data(), code_.size());
  for (std::size_t i = 0; i < calls_.size() / sizeof(Call); ++i) {
    const Call call = get<Call>(calls_, i);
    const void* address = library_address(call.function);
    std::memcpy(to + call.at, &address, sizeof address);
  }
  for (std::size_t i = 0; i < pointers_.size() / sizeof(std::uint32_t); ++i) {
    std::byte* pointer = to + get<std::uint32_t>(pointers_, i);
    std::uint64_t value;
    std::memcpy(&value, pointer, sizeof value);
    value += reinterpret_cast<std::uintptr_t>(at);
    std::memcpy(pointer, &value, sizeof value);
  }
}

}  // namespace kplan::jit
