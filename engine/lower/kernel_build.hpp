#pragma once
// One kernel being made: streams, instructions and outputs, one after the other, and then the call. Of kernel_call.cpp.

#include <map>
#include <utility>
#include <vector>

#include "engine/lower/kernel_call.hpp"

namespace kplan {

struct Lowering::Build {
  const Lowering& lowering;
  const Piece& nest;  ///< gives dimensions and list
  jit::KernelSpec spec;
  KernelCall call;
  std::map<const Expr*, int> element_streams;  ///< of the value's elements
  const ElementType* place_type = nullptr;
  int right_stream = -1;       ///< unpack: where the value comes from, as an element of value_type
  int right_instruction = -1;  ///< move: the value itself
  int left_instruction = -1;   ///< merge: what the first of two has made of the place
  Scalar value_scalar = Scalar::f64;
  bool may_be_cut = true;  ///< a part of a message may be walked alone

  Build(const Lowering& l, const Piece& n);

  /// The number of a new stream; `unit`: what divides the distances between the track's bases.
  int stream(StreamKind kind, int buffer, const Track& track, std::size_t unit);
  /// The streams and numbers of a value's tracks.
  void add_value_tracks(const ValueForm& form, const Piece& piece);

  // Each gives the number of the instruction, which is new unless it is a load that is there.

  int load(int from, Scalar type, std::size_t offset_bytes);
  int convert(int value, Scalar to);
  /// `guard`: the instruction that says whether divisions are wanted; -1: always.
  int value(const Expr& e, int guard);

  /// Copies elements from stream 1 to stream 0, or the components of cells; `target`: whose distances are stream 0's.
  void copy(const ElementType& type, const Distances& distances, std::size_t target);

  /// The operator, with the value as `right`, as outputs to stream 0.
  void add_updates(const Reduction& r, bool is_assign);

  KernelCall finish(const char* kind, int reduction, bool is_injective);

 private:
  bool is_literal_stride(const Track& track, std::size_t d, std::size_t unit) const;
  int emit(jit::Instruction i);
  int constant(const ScalarValue& v);
  int apply(Operation op, Scalar type, int a, int b = -1, int c = -1, int guard = -1);
  int new_slot(const ScalarValue& v);
  int parameter(int id);
  /// A where-bound number: a base, from the list or as a scalar, and strides over the nest.
  int number(int n, Scalar type);
  /// A where-bound value of any type, written out for every iteration.
  int tabulated(int n, Scalar type);
  int both(int guard, int condition);
  std::size_t field_offset(const Expr& e) const;
  /// No stream needs its list: the list is a dimension like any other.
  void add_list_dimension();
  /// One run of bytes from one place to another.
  bool is_block_copy() const;

  std::map<std::pair<int, int>, const Track*> number_tracks_;  ///< by number and word
  std::map<int, int> parameter_slots_;
  std::vector<std::vector<std::int64_t>> strides_bytes_;  ///< by stream
};

}  // namespace kplan
