// How it works: a tile of n x n elements is n vector loads along the source's contiguous loop, log2(n) rounds of
// shuffles, and n vector stores along the target's. Each round interleaves vector i with vector i + n/2; after
// log2(n) of them rows have become columns. Tiles go in blocks of a cache line by a cache line, so that no line is met
// twice, and blocks in panels of so many rows as the address translation keeps at hand. What no block covers is copied
// element by element.
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
        side_(bytes_ == 16  ? 1
              : bytes_ == 8 ? 4
                            : 8),
        block_(bytes_ >= 4 ? 64 / bytes_ : side_) {}

  void emit(const Place& place) {
    const Split rows = frame_.split(along_target_.count, block_ * panel_);
    const Place rest = loop(place, along_target_, rows.trips, block_ * panel_,
                            [&](const Place& panel) { strips(panel, frame_.number(block_ * panel_)); });
    strips(rest, rows.rest);
  }

 private:
  /// So many rows, strip by strip.
  void strips(const Place& place, Value* row_count) {
    auto& b = frame_.builder;
    const Split columns = frame_.split(along_source_.count, block_);
    Value* const whole =
        b.CreateAShr(row_count, frame_.number(__builtin_ctzll(static_cast<unsigned long long>(block_))));
    Value* const left = b.CreateAnd(row_count, frame_.number(block_ - 1));
    const Place last = loop(place, along_source_, columns.trips, block_, [&](const Place& strip) {
      const Place below = loop(strip, along_target_, whole, block_, [&](const Place& at) { block(at); });
      loop(below, along_target_, left, 1, [&](const Place& row) {
        loop(row, along_source_, frame_.number(block_), 1, [&](const Place& at) { element(at); });
      });
    });
    loop(last, along_source_, columns.rest, 1, [&](const Place& column) {
      loop(column, along_target_, row_count, 1, [&](const Place& at) { element(at); });
    });
  }

  /// Whole cache lines at both ends.
  void block(const Place& at) {
    for (std::int64_t row = 0; row < block_; row += side_)
      for (std::int64_t column = 0; column < block_; column += side_)
        tile(frame_.advanced(frame_.advanced(at, along_target_, row), along_source_, column));
  }

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

  llvm::Type* element_type() {
    auto& b = frame_.builder;
    if (bytes_ == 16) return llvm::FixedVectorType::get(b.getInt64Ty(), 2);
    return b.getIntNTy(static_cast<unsigned>(8 * bytes_));
  }

  void tile(const Place& at) {
    if (side_ == 1) return element(at);
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
  int side_;            ///< of a tile
  std::int64_t block_;  ///< elements that are a cache line
  static constexpr std::int64_t panel_ = 8;
};

}  // namespace

void emit_transposition(Frame& frame, const LoopNest& nest, const Place& place) {
  Transposition(frame, nest).emit(place);
}

}  // namespace kplan::jit
