// How it works: a tile of n x n elements is n vector loads along the source's contiguous loop, log2(n) rounds of
// shuffles, and n vector stores along the target's. Each round interleaves vector i with vector i + n/2; after
// log2(n) of them rows have become columns. What no tile covers is copied element by element.
#include "jit/llvm/elements.hpp"

namespace kplan::jit {
namespace {

using llvm::Value;

class Transposition {
 public:
  Transposition(Frame& frame, const LoopNest& nest)
      : frame_(frame),
        along_source_(nest.tile[0]),
        along_target_(nest.tile[1]),
        bytes_(nest.copy.factor),
        side_(bytes_ == 8 ? 4 : 8) {}

  void emit(const Place& place) {
    const Split columns = frame_.split(along_source_.count, side_);
    const Split rows = frame_.split(along_target_.count, side_);
    const Place last = loop(place, along_source_, columns.trips, side_, [&](const Place& strip) {
      const Place below = loop(strip, along_target_, rows.trips, side_, [&](const Place& at) { tile(at); });
      loop(below, along_target_, rows.rest, 1, [&](const Place& row) {
        for (int i = 0; i < side_; ++i) element(frame_.advanced(row, along_source_, i));
      });
    });
    loop(last, along_source_, columns.rest, 1, [&](const Place& column) {
      loop(column, along_target_, frame_.count(along_target_.count), 1, [&](const Place& at) { element(at); });
    });
  }

 private:
  Place loop(const Place& from, const Loop& of, Value* trips, std::int64_t steps,
             llvm::function_ref<void(const Place&)> body) {
    const auto* literal = llvm::dyn_cast<llvm::ConstantInt>(trips);
    return literal != nullptr && literal->isZero() ? from : frame_.loop(from, of, trips, steps, body);
  }

  void copy(llvm::Type* type, Value* to, Value* from) { store(load(type, from), to); }
  Value* load(llvm::Type* type, Value* from) {
    auto* out = frame_.builder.CreateAlignedLoad(type, from, llvm::Align(1));
    frame_.mark(out, false);
    return out;
  }
  void store(Value* value, Value* to) {
    frame_.mark(frame_.builder.CreateAlignedStore(value, to, llvm::Align(1)), true);
  }

  void element(const Place& at) { copy(element_type(), at.pointer(0), at.pointer(1)); }

  llvm::Type* element_type() { return frame_.builder.getIntNTy(static_cast<unsigned>(8 * bytes_)); }

  void tile(const Place& at) {
    auto* row_type = llvm::FixedVectorType::get(element_type(), static_cast<unsigned>(side_));
    std::vector<Value*> rows;
    Place row = at;
    for (int i = 0; i < side_; ++i) {
      rows.push_back(load(row_type, row.pointer(1)));
      row = frame_.advanced(row, along_target_, 1);
    }
    std::vector<int> low, high;
    for (int i = 0; i < side_ / 2; ++i) {
      low.insert(low.end(), {i, side_ + i});
      high.insert(high.end(), {side_ / 2 + i, side_ + side_ / 2 + i});
    }
    for (int round = 1; round < side_; round *= 2) {
      std::vector<Value*> mixed;
      for (int i = 0; i < side_ / 2; ++i) {
        Value* first = rows[static_cast<std::size_t>(i)];
        Value* second = rows[static_cast<std::size_t>(i + side_ / 2)];
        mixed.push_back(frame_.builder.CreateShuffleVector(first, second, low));
        mixed.push_back(frame_.builder.CreateShuffleVector(first, second, high));
      }
      rows = std::move(mixed);
    }
    Place column = at;
    for (int i = 0; i < side_; ++i) {
      store(rows[static_cast<std::size_t>(i)], column.pointer(0));
      column = frame_.advanced(column, along_source_, 1);
    }
  }

  Frame& frame_;
  const Loop& along_source_;
  const Loop& along_target_;
  std::int64_t bytes_;
  int side_;
};

}  // namespace

void emit_transposition(Frame& frame, const LoopNest& nest, const Place& place) {
  Transposition(frame, nest).emit(place);
}

}  // namespace kplan::jit
