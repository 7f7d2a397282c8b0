// How it works: a tile of n x n elements is n vector loads along the source's contiguous loop, log2(n) rounds of
// shuffles, and n vector stores along the target's. Each round interleaves vector i with vector i + n/2; after
// log2(n) of them rows have become columns. Tiles go in blocks of a cache line by a cache line, so that no line is met
// twice, and blocks in panels of so many rows as the address translation keeps at hand. Each block asks for the lines
// of the one beside it, in the next strip. What no block covers is copied element by element.
//
// A long target is written past the caches, in whole lines, where these begin in the same row of every column: in the
// caches, lines of columns whose stride is a power of two drive each other out before they are full.
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
        block_(bytes_ >= 4 ? line_bytes / bytes_ : side_) {}

  void emit(const Place& place) {
    if (bytes_ < 4) return through_caches(place);
    frame_.either(
        goes_past_caches(place), [&] { past_caches(place); }, [&] { through_caches(place); });
  }

 private:
  enum class Stores { cached, past_caches };
  static constexpr std::int64_t line_bytes = 64;

  static std::int64_t blocks_in_panel(Stores stores) { return stores == Stores::cached ? 8 : 2; }

  /// Whether stores are to go there, and the target's lines begin in the same row of every column.
  Value* goes_past_caches(const Place& place) {
    auto& b = frame_.builder;
    Value* const between_lines =
        b.CreateOr(rest(frame_.stride(0, along_source_.dimension), line_bytes), rest(address(place), bytes_));
    return b.CreateAnd(frame_.goes_past_caches(), b.CreateICmpEQ(between_lines, frame_.number(0)));
  }

  void through_caches(const Place& place) { panels(place, frame_.count(along_target_.count), Stores::cached); }

  void past_caches(const Place& place) {
    auto& b = frame_.builder;
    Value* const rows = frame_.count(along_target_.count);
    Value* const up_to_line = quotient(rest(b.CreateNeg(address(place)), line_bytes), bytes_);
    Value* const before = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, rows, up_to_line);
    const Place aligned = frame_.loop(place, along_target_, before, 1, [&](const Place& row) {
      frame_.loop(row, along_source_, frame_.count(along_source_.count), 1, [&](const Place& at) { element(at); });
    });
    panels(aligned, b.CreateSub(rows, before), Stores::past_caches);
  }

  void panels(const Place& place, Value* rows, Stores stores) {
    const std::int64_t panel = block_ * blocks_in_panel(stores);
    const Place last = frame_.loop(place, along_target_, quotient(rows, panel), panel,
                                   [&](const Place& at) { strips(at, frame_.number(panel), stores); });
    strips(last, rest(frame_.builder.CreateBinaryIntrinsic(llvm::Intrinsic::smax, rows, frame_.number(0)), panel),
           stores);
  }

  /// So many rows, strip by strip.
  void strips(const Place& place, Value* rows, Stores stores) {
    const Split columns = frame_.split(along_source_.count, block_);
    const Place last = frame_.loop(place, along_source_, columns.trips, block_, [&](const Place& strip) {
      const Place below = frame_.loop(strip, along_target_, quotient(rows, block_), block_, [&](const Place& at) {
        ask_for_lines(frame_.advanced(at, along_source_, block_), stores);
        block(at, stores);
      });
      frame_.loop(below, along_target_, rest(rows, block_), 1, [&](const Place& row) {
        frame_.loop(row, along_source_, frame_.number(block_), 1, [&](const Place& at) { element(at); });
      });
    });
    frame_.loop(last, along_source_, columns.rest, 1, [&](const Place& column) {
      frame_.loop(column, along_target_, rows, 1, [&](const Place& at) { element(at); });
    });
  }

  /// Whole cache lines at both ends. What goes past the caches must fill a line at once.
  void block(const Place& at, Stores stores) {
    const std::int64_t rows = stores == Stores::cached ? side_ : block_;
    for (std::int64_t row = 0; row < block_; row += rows)
      for (std::int64_t column = 0; column < block_; column += side_)
        tiles(frame_.advanced(frame_.advanced(at, along_target_, row), along_source_, column), rows, stores);
  }

  /// Of a block, which is in the next strip.
  void ask_for_lines(const Place& block, Stores stores) {
    for (std::int64_t i = 0; i < block_; ++i) {
      frame_.prefetch(frame_.advanced(block, along_target_, i).pointer(1), /*is_target=*/false);
      if (stores == Stores::cached)
        frame_.prefetch(frame_.advanced(block, along_source_, i).pointer(0), /*is_target=*/true);
    }
  }

  /// As many columns as a tile has.
  void tiles(const Place& at, std::int64_t rows, Stores stores) {
    std::vector<std::vector<Value*>> columns;
    for (std::int64_t row = 0; row < rows; row += side_)
      columns.push_back(tile(frame_.advanced(at, along_target_, row)));
    Place column = at;
    for (std::size_t i = 0; i < static_cast<std::size_t>(side_); ++i) {
      Value* to = column.pointer(0);
      for (const auto& tile : columns) {
        store(tile[i], to, stores);
        to = frame_.offset(to, side_ * bytes_);
      }
      column = frame_.advanced(column, along_source_, 1);
    }
  }

  /// The columns of a tile.
  std::vector<Value*> tile(const Place& at) {
    std::vector<Value*> rows;
    Place row = at;
    for (int i = 0; i < side_; ++i) {
      rows.push_back(load(tile_row_type(), row.pointer(1)));
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
    return rows;
  }

  void element(const Place& at) { store(load(element_type(), at.pointer(1)), at.pointer(0), Stores::cached); }

  Value* load(llvm::Type* type, Value* from) {
    auto* out = frame_.builder.CreateAlignedLoad(type, from, llvm::Align(1));
    frame_.mark(out, false);
    return out;
  }

  void store(Value* value, Value* to, Stores stores) {
    if (stores == Stores::past_caches) return frame_.store_past_caches(value, to);
    frame_.mark(frame_.builder.CreateAlignedStore(value, to, llvm::Align(1)), true);
  }

  llvm::Type* element_type() {
    auto& b = frame_.builder;
    if (bytes_ == 16) return llvm::FixedVectorType::get(b.getInt64Ty(), 2);
    return b.getIntNTy(static_cast<unsigned>(8 * bytes_));
  }

  llvm::Type* tile_row_type() {
    return side_ == 1 ? element_type() : llvm::FixedVectorType::get(element_type(), static_cast<unsigned>(side_));
  }

  Value* address(const Place& at) { return frame_.builder.CreatePtrToInt(at.pointer(0), frame_.builder.getInt64Ty()); }

  /// By a power of two.
  Value* quotient(Value* value, std::int64_t divisor) {
    return frame_.builder.CreateAShr(
        value, static_cast<std::uint64_t>(__builtin_ctzll(static_cast<unsigned long long>(divisor))));
  }
  Value* rest(Value* value, std::int64_t divisor) {
    return frame_.builder.CreateAnd(value, frame_.number(divisor - 1));
  }

  Frame& frame_;
  const Loop& along_source_;
  const Loop& along_target_;
  std::int64_t bytes_;
  int side_;            ///< of a tile
  std::int64_t block_;  ///< elements that are a cache line
};

}  // namespace

void emit_transposition(Frame& frame, const LoopNest& nest, const Place& place) {
  Transposition(frame, nest).emit(place);
}

}  // namespace kplan::jit
