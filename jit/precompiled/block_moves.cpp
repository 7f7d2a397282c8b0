// How it works: moves copy bits, so the width alone says which loop it is. Elements that touch are one memcpy.
#include <cstring>

#include "jit/precompiled/block_operations.hpp"

namespace kplan::jit {
namespace {

std::uint64_t element(std::uint64_t at, std::uint64_t stride, TrackList list, int i) {
  return at + stride * static_cast<std::uint64_t>(i) + (list ? list[i] : 0);
}

template <class Bits>
void load(std::byte* slot, std::uint64_t at, std::uint64_t stride, TrackList list, int count) {
  auto* __restrict out = reinterpret_cast<Bits*>(slot);
  const auto get = [&](std::uint64_t from) {
    Bits bits;
    std::memcpy(&bits, reinterpret_cast<const void*>(from), sizeof bits);
    return bits;
  };
  if (!list && stride == sizeof(Bits)) {
    std::memcpy(out, reinterpret_cast<const void*>(at), sizeof(Bits) * static_cast<std::size_t>(count));
  } else if (!list) {
    for (int i = 0; i < count; ++i) out[i] = get(element(at, stride, {}, i));
  } else {
    for (int i = 0; i < count; ++i) out[i] = get(element(at, stride, list, i));
  }
}

template <class Bits>
void store(std::byte* slot, std::uint64_t at, std::uint64_t stride, TrackList list, int count) {
  const auto* in = reinterpret_cast<const Bits*>(slot);
  const auto put = [&](std::uint64_t to, Bits bits) { std::memcpy(reinterpret_cast<void*>(to), &bits, sizeof bits); };
  if (!list && stride == sizeof(Bits)) {
    std::memcpy(reinterpret_cast<void*>(at), in, sizeof(Bits) * static_cast<std::size_t>(count));
  } else if (!list) {
    for (int i = 0; i < count; ++i) put(element(at, stride, {}, i), in[i]);
  } else {
    for (int i = 0; i < count; ++i) put(element(at, stride, list, i), in[i]);
  }
}

void load_boolean(std::byte* slot, std::uint64_t at, std::uint64_t stride, TrackList list, int count) {
  load<std::uint8_t>(slot, at, stride, list, count);
  auto* bytes = reinterpret_cast<std::uint8_t*>(slot);
  for (int i = 0; i < count; ++i) bytes[i] = bytes[i] != 0;
}

void count_up(std::byte* slot, std::uint64_t at, std::uint64_t stride, TrackList, int count) {
  auto* out = reinterpret_cast<std::uint64_t*>(slot);
  for (int i = 0; i < count; ++i) out[i] = at + stride * static_cast<std::uint64_t>(i);
}

}  // namespace

BlockMove block_load(std::size_t bytes) {
  return bytes == 1   ? load<std::uint8_t>
         : bytes == 2 ? load<std::uint16_t>
         : bytes == 4 ? load<std::uint32_t>
                      : load<std::uint64_t>;
}

BlockMove block_store(std::size_t bytes) {
  return bytes == 1   ? store<std::uint8_t>
         : bytes == 2 ? store<std::uint16_t>
         : bytes == 4 ? store<std::uint32_t>
                      : store<std::uint64_t>;
}

BlockMove block_load_boolean() { return load_boolean; }
BlockMove block_count() { return count_up; }

}  // namespace kplan::jit
