// How it works: single producer, single consumer, as ring.cpp, but that the word stands before the bytes, since how
// many there are is in the chunk.
#include "transports/shared/pipe.hpp"

#include <utility>

namespace kplan::transport {
namespace {

constexpr std::size_t line_bytes = 64;
using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Chunk) == 32);

std::size_t slot_bytes(std::size_t chunk_bytes) {
  return (sizeof(Chunk) + chunk_bytes + line_bytes - 1) / line_bytes * line_bytes;
}

}  // namespace

std::size_t pipe_bytes(std::size_t chunk_bytes) { return line_bytes + 2 * slot_bytes(chunk_bytes); }

PipeEnd::PipeEnd(PipeMemory memory, std::size_t chunk_bytes)
    : memory_(std::move(memory)), slot_bytes_(slot_bytes(chunk_bytes)) {}

Chunk& PipeEnd::chunk(std::uint64_t number) const {
  return *reinterpret_cast<Chunk*>(memory_.base + line_bytes + number % slots * slot_bytes_);
}

Word& PipeEnd::released() const { return *reinterpret_cast<Word*>(memory_.base); }

Chunk* PipeSender::free() {
  if (next_ >= released_ + slots) released_ = released().load(std::memory_order_acquire);
  return next_ < released_ + slots ? &chunk(next_) : nullptr;
}

void PipeSender::put() {
  Chunk& c = chunk(next_);
  c.word.store(++next_, std::memory_order_release);
}

Chunk* PipeReceiver::arrived() {
  Chunk& c = chunk(next_);
  return c.word.load(std::memory_order_acquire) == next_ + 1 ? &c : nullptr;
}

void PipeReceiver::release() { released().store(next_, std::memory_order_release); }

}  // namespace kplan::transport
