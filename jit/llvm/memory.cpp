// How it works: lanes that touch are one vector access; lanes a few elements apart are several vectors and shuffles,
// never reaching beyond the last lane's element; one address for all lanes is a broadcast; all else goes lane by
// lane. A complex number's parts are shuffled apart when loaded and together when stored.
#include <numeric>

#include "jit/llvm/elements.hpp"

namespace kplan::jit {

using llvm::Value;

namespace {

std::vector<int> counting(int first, int step, int count) {
  std::vector<int> out(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = first + i * step;
  return out;
}

}  // namespace

Memory::Memory(Frame& frame, const LoopNest& nest, const Place& place, int lanes)
    : frame_(frame), nest_(nest), place_(place), lanes_(lanes) {}

Value* Memory::address(std::size_t stream, int lane) {
  Value*& known = addresses_[{stream, lane}];
  if (known != nullptr) return known;
  if (lane == 0) {
    known = place_.pointer(stream);
  } else {
    Value* step = frame_.stride(stream, nest_.inner->dimension);
    const auto* literal = llvm::dyn_cast<llvm::ConstantInt>(step);
    if (literal != nullptr) return known = lane_offset(stream, literal->getSExtValue() * lane, lane);
    Value* before = address(stream, lane - 1);
    return addresses_[{stream, lane}] = frame_.offset(before, step);
  }
  return known = lane_offset(stream, 0, lane);
}

/// The place's address plus `bytes`, plus the list's entry where the list runs in lanes.
Value* Memory::lane_offset(std::size_t stream, std::int64_t bytes, int lane) {
  Value* at = frame_.offset(place_.pointer(stream), bytes);
  if (!frame_.spec.streams[stream].is_indexed || !nest_.inner || nest_.inner->dimension != list_dimension) return at;
  Value* position =
      lane == 0 ? place_.list_position() : frame_.builder.CreateAdd(place_.list_position(), frame_.number(lane));
  return frame_.offset(at, frame_.list_entry(stream, position));
}

Value* Memory::load_from(llvm::Type* type, Value* from, std::size_t stream) {
  auto* load = frame_.builder.CreateAlignedLoad(type, from, llvm::Align(1));
  frame_.mark(load, stream == 0);
  return load;
}

void Memory::store_to(Value* value, Value* to) {
  frame_.mark(frame_.builder.CreateAlignedStore(value, to, llvm::Align(1)), true);
}

Value* Memory::gather(std::size_t stream, std::int64_t offset_bytes, llvm::Type* type) {
  Value* out = llvm::PoisonValue::get(llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes_)));
  for (int lane = 0; lane < lanes_; ++lane) {
    Value* element = load_from(type, frame_.offset(address(stream, lane), offset_bytes), stream);
    out = frame_.builder.CreateInsertElement(out, element, static_cast<std::uint64_t>(lane));
  }
  return out;
}

Value* Memory::load_near(std::size_t stream, std::int64_t offset_bytes, llvm::Type* type, std::int64_t stride) {
  const auto bytes = static_cast<std::int64_t>(type->getScalarSizeInBits() / 8);
  const bool is_reversed = stride < 0;
  const int apart = static_cast<int>((is_reversed ? -stride : stride) / bytes);
  const int span = (lanes_ - 1) * apart + 1;
  Value* first = frame_.offset(place_.pointer(stream), offset_bytes + (is_reversed ? (lanes_ - 1) * stride : 0));
  auto* vector = llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes_));
  auto load_at = [&](int element) { return load_from(vector, frame_.offset(first, element * bytes), stream); };

  // Piece by piece: what the pieces so far hold of the result, and where it comes from in the next one. The last piece
  // ends at the last lane's element.
  Value* out = nullptr;
  for (int lane = 0; lane < lanes_;) {
    const int begin = std::min(lane * apart, span - lanes_);
    int end = lane;
    while (end < lanes_ && end * apart < begin + lanes_) ++end;
    Value* piece = load_at(begin);
    std::vector<int> mask(static_cast<std::size_t>(lanes_), -1);
    for (int i = 0; i < end; ++i) {
      const int from = i < lane ? i : i * apart - begin;
      mask[static_cast<std::size_t>(i)] = i < lane || out == nullptr ? from : from + lanes_;
    }
    out = out == nullptr ? frame_.builder.CreateShuffleVector(piece, mask)
                         : frame_.builder.CreateShuffleVector(out, piece, mask);
    lane = end;
  }
  return is_reversed ? frame_.builder.CreateShuffleVector(out, counting(lanes_ - 1, -1, lanes_)) : out;
}

Value* Memory::load_lanes(std::size_t stream, std::int64_t offset_bytes, llvm::Type* type) {
  if (lanes_ == 1) return load_from(type, frame_.offset(address(stream, 0), offset_bytes), stream);
  const auto bytes = static_cast<std::int64_t>(type->getScalarSizeInBits() / 8);
  const std::int64_t stride = stride_along(frame_.spec, stream, nest_.inner->dimension);
  switch (spread_of(stride, bytes)) {
    case Spread::same: {
      Value* one = load_from(type, frame_.offset(place_.pointer(stream), offset_bytes), stream);
      return frame_.builder.CreateVectorSplat(static_cast<unsigned>(lanes_), one);
    }
    case Spread::unit:
    case Spread::near: return load_near(stream, offset_bytes, type, stride);
    case Spread::apart: break;
  }
  return gather(stream, offset_bytes, type);
}

void Memory::store_lanes(std::int64_t offset_bytes, Value* value) {
  auto& b = frame_.builder;
  if (lanes_ == 1) return store_to(value, frame_.offset(address(0, 0), offset_bytes));
  const auto bytes = static_cast<std::int64_t>(value->getType()->getScalarSizeInBits() / 8);
  const std::int64_t stride = stride_along(frame_.spec, 0, nest_.inner->dimension);
  if (stride == bytes) return store_to(value, frame_.offset(place_.pointer(0), offset_bytes));
  if (stride == -bytes) {
    Value* reversed = b.CreateShuffleVector(value, counting(lanes_ - 1, -1, lanes_));
    return store_to(reversed, frame_.offset(place_.pointer(0), offset_bytes + (lanes_ - 1) * stride));
  }
  for (int lane = 0; lane < lanes_; ++lane) {
    store_to(b.CreateExtractElement(value, static_cast<std::uint64_t>(lane)),
             frame_.offset(address(0, lane), offset_bytes));
  }
}

Lanes Memory::load(std::size_t stream, std::int64_t offset_bytes, Scalar type) {
  auto& b = frame_.builder;
  llvm::Type* part = memory_type(b.getContext(), type);
  const auto part_bytes = static_cast<std::int64_t>(size_of(part_of(type)));
  if (!is_complex(type)) {
    Value* bits = load_lanes(stream, offset_bytes, part);
    return {type == Scalar::boolean ? b.CreateICmpNE(bits, llvm::Constant::getNullValue(bits->getType())) : bits,
            nullptr};
  }
  if (lanes_ > 1 && stride_along(frame_.spec, stream, nest_.inner->dimension) == 2 * part_bytes) {
    auto* pairs = llvm::FixedVectorType::get(part, static_cast<unsigned>(2 * lanes_));
    Value* both = load_from(pairs, frame_.offset(place_.pointer(stream), offset_bytes), stream);
    return {b.CreateShuffleVector(both, counting(0, 2, lanes_)), b.CreateShuffleVector(both, counting(1, 2, lanes_))};
  }
  Value* real = load_lanes(stream, offset_bytes, part);
  return {real, load_lanes(stream, offset_bytes + part_bytes, part)};
}

void Memory::store(std::int64_t offset_bytes, Scalar type, Lanes value) {
  auto& b = frame_.builder;
  const auto part_bytes = static_cast<std::int64_t>(size_of(part_of(type)));
  if (type == Scalar::boolean) {
    llvm::Type* byte = b.getInt8Ty();
    if (lanes_ > 1) byte = llvm::FixedVectorType::get(byte, static_cast<unsigned>(lanes_));
    return store_lanes(offset_bytes, b.CreateZExt(value.real, byte));
  }
  if (!is_complex(type)) return store_lanes(offset_bytes, value.real);
  if (lanes_ > 1 && stride_along(frame_.spec, 0, nest_.inner->dimension) == 2 * part_bytes) {
    std::vector<int> mask;
    for (int i = 0; i < lanes_; ++i) mask.insert(mask.end(), {i, lanes_ + i});
    return store_to(b.CreateShuffleVector(value.real, value.imaginary, mask),
                    frame_.offset(place_.pointer(0), offset_bytes));
  }
  store_lanes(offset_bytes, value.real);
  store_lanes(offset_bytes + part_bytes, value.imaginary);
}

Value* Memory::load_bits(std::size_t stream, std::int64_t bytes) {
  return load_lanes(stream, 0, frame_.builder.getIntNTy(static_cast<unsigned>(8 * bytes)));
}

void Memory::store_bits(Value* value) { store_lanes(0, value); }

}  // namespace kplan::jit
