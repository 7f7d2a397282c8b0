#pragma once
// The tracks of sources over blocks of environments.

#include <optional>
#include <vector>

#include "engine/analysis/affine_reference.hpp"
#include "engine/analysis/columns.hpp"
#include "engine/analysis/pieces.hpp"

namespace kplan {

/// A piece whose list grows block by block.
struct GrowingPiece {
  std::vector<GrowingTrack> tracks;
  std::int64_t list_length = 0;
};

class TrackColumns {
 public:
  /// `columns`, `bound`, `sources` and what they name must live as long.
  TrackColumns(ColumnEvaluator& columns, const std::vector<TrackSource>& sources, const BoundPlan& bound);

  /// Begins pieces of the rank that `columns` evaluates for. Whether their elements are found by columns, not
  /// environment by environment.
  bool begin();
  /// Whether the list has one entry for each environment then.
  bool lists_environments() const { return !has_slices_ || form_ == Form::same; }
  /// Works out what the environments of the block have. Throws BlockFault.
  void take(const Block& block);
  /// What they have of one source, but for elements by its first ones, and not where those are not found by columns.
  const Column& column(std::size_t source) const { return values_[source]; }
  /// Appends the block's environments [first, end). Throws BlockFault.
  void append(std::size_t first, std::size_t end, GrowingPiece& to);
  /// What has grown since begin(), which is not nothing.
  Piece piece(GrowingPiece grown) const;

 private:
  /// How elements are found where some references are slices.
  enum class Form : std::uint8_t {
    same,  ///< no where-bound variable is in the slices' bounds: they are dimensions of the piece
    runs,  ///< slices are elements side by side, listed by their firsts and counts
    any,   ///< environment by environment
  };
  struct Reference {
    const Expr* expression;
    bool is_slice;
    ExprPtr first = nullptr;                    ///< same: its first element
    std::int64_t count = 1;                     ///< same: how many there are
    std::optional<ColumnProgram> program = {};  ///< of the first element; of runs also how many there are
    Column firsts = {}, counts = {};            ///< what the program says
  };

  Form form_of(const PlanModel& plan) const;
  void prepare(Reference& reference) const;
  bool find_dimensions();
  std::vector<SliceDimension> dimensions_of(const Expr& e) const;
  void run(Reference& reference);
  void fill(std::size_t source, std::int64_t* out);
  void fill_counts(const Reference& counted, std::int64_t* out);
  std::int64_t append_runs(std::size_t first, std::size_t end, std::vector<GrowingTrack>& tracks);
  std::int64_t append_one(std::size_t row, std::vector<GrowingTrack>& tracks);
  std::vector<std::int64_t> track_at(std::size_t source, std::size_t row);

  ColumnEvaluator& columns_;
  const Block* block_ = nullptr;
  const std::vector<TrackSource>& sources_;
  const std::vector<Layout>& layouts_;
  std::vector<std::vector<Reference>> references_;  ///< by source: the element, or all that are counted
  Form form_ = Form::same;
  bool has_slices_ = false;                  ///< among elements
  std::vector<std::int64_t> counts_;         ///< of the dimensions that they are
  std::vector<AffineReference> dimensions_;  ///< the same, by source
  std::vector<Column> values_;               ///< by source; of slices the firsts
  Column lengths_, run_;
};

}  // namespace kplan
