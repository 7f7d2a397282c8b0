// How it works: a star forest has an edge for each element that arrives: its leaf is the place, its root the element
// that comes. Sums run the other way, from leaves to roots. The graph is built once, forests of different arrays are
// all begun before any is ended.
#include "tools/bench/petsc_sf.hpp"

#include <petscsf.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "tools/bench/exchange/region_type.hpp"
#include "tools/bench/methods/exchange_methods.hpp"

namespace kplan::bench {
namespace {

void check(PetscErrorCode code) {
  if (code != 0) throw std::runtime_error("PETSc failed with code " + std::to_string(code));
}

/// The edges between one array of roots and one of leaves.
struct Edges {
  std::vector<PetscInt> leaves;
  std::vector<PetscSFNode> roots;
  void add(const Element& leaf, const Element& root, int root_rank) {
    leaves.push_back(static_cast<PetscInt>(leaf.number));
    roots.push_back({root_rank, static_cast<PetscInt>(root.number)});
  }
};
using Forests = std::map<std::pair<int, int>, Edges>;  ///< by the arrays of roots and of leaves

Forests edges_of(const Exchange& e, int block) {
  Forests out;
  const bool is_sum = e.combine == Combine::sum;
  const auto add = [&](const Region& leaf_region, const Region& root_region, int root_rank) {
    const std::vector<Element> leaves = elements_of(leaf_region), roots = elements_of(root_region);
    for (std::size_t k = 0; k < leaves.size(); k += static_cast<std::size_t>(block))
      out[{roots[k].array, leaves[k].array}].add({0, leaves[k].number / block}, {0, roots[k].number / block},
                                                 root_rank);
  };
  if (is_sum)
    for (const Link& l : e.sends) add(l.mine, l.theirs, l.peer);
  for (const Link& l : e.receives) {
    if (!is_sum) add(l.mine, l.theirs, l.peer);
    else if (l.peer == e.team.rank) add(l.theirs, l.mine, l.peer);
  }
  return out;
}

/// Whether each leaf has one root, as it must in a star forest, on all ranks. Not so where a node's share goes to
/// several neighbours.
bool are_stars(const Exchange& e, int block) {
  bool out = true;
  for (auto&& [arrays, edges] : edges_of(e, block)) {
    std::ranges::sort(edges.leaves);
    out = out && std::ranges::adjacent_find(edges.leaves) == edges.leaves.end();
  }
  return largest(e.team, out ? 0.0 : 1.0) == 0;
}

class Runner {
 public:
  Runner(SharedExchange exchange, int block) : exchange_(std::move(exchange)) {
    const Exchange& e = *exchange_;
    for (auto& [arrays, edges] : collective_edges(block)) {
      Forest f;
      const Array& roots = e.arrays[static_cast<std::size_t>(arrays.first)];
      f.root_data = roots.data;
      f.leaf_data = e.arrays[static_cast<std::size_t>(arrays.second)].data;
      check(PetscSFCreate(e.team.comm, &f.sf));
      check(PetscSFSetFromOptions(f.sf));
      check(PetscSFSetGraph(f.sf, static_cast<PetscInt>(roots.element_count() / block),
                            static_cast<PetscInt>(edges.leaves.size()), edges.leaves.data(), PETSC_COPY_VALUES,
                            edges.roots.data(), PETSC_COPY_VALUES));
      check(PetscSFSetUp(f.sf));
      forests_.push_back(f);
    }
    MPI_Datatype unit = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(block, basic_type(e.wire_type()), &unit);
    MPI_Type_commit(&unit);
    block_type_ = OwnedType(unit, MPI_Type_free);
    unit_ = block == 1 ? basic_type(e.wire_type()) : unit;
  }
  ~Runner() {
    for (Forest& f : forests_) PetscSFDestroy(&f.sf);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void run() {
    if (exchange_->combine == Combine::sum) {
      for (Forest& f : forests_) check(PetscSFReduceBegin(f.sf, unit_, f.leaf_data, f.root_data, MPI_SUM));
      for (Forest& f : forests_) check(PetscSFReduceEnd(f.sf, unit_, f.leaf_data, f.root_data, MPI_SUM));
    } else {
      for (Forest& f : forests_) check(PetscSFBcastBegin(f.sf, unit_, f.root_data, f.leaf_data, MPI_REPLACE));
      for (Forest& f : forests_) check(PetscSFBcastEnd(f.sf, unit_, f.root_data, f.leaf_data, MPI_REPLACE));
    }
  }

 private:
  struct Forest {
    PetscSF sf = nullptr;
    void *root_data = nullptr, *leaf_data = nullptr;
  };

  /// The edges of the pairs of arrays that any rank has, the same pairs on all.
  Forests collective_edges(int block) const {
    const Exchange& e = *exchange_;
    Forests out = edges_of(e, block);
    const int count = static_cast<int>(e.arrays.size());
    for (int root = 0; root < count; ++root)
      for (int leaf = 0; leaf < count; ++leaf)
        if (largest(e.team, out.contains({root, leaf}) ? 1.0 : 0.0) > 0) out[{root, leaf}];
    return out;
  }

  SharedExchange exchange_;
  std::vector<Forest> forests_;
  OwnedType block_type_;
  MPI_Datatype unit_ = MPI_DATATYPE_NULL;
};

}  // namespace

std::string petsc_version() {
  return std::to_string(PETSC_VERSION_MAJOR) + "." + std::to_string(PETSC_VERSION_MINOR) + "." +
         std::to_string(PETSC_VERSION_SUBMINOR);
}

void begin_petsc() {
  check(PetscOptionsSetValue(nullptr, "-no_signal_handler", "true"));
  check(PetscInitializeNoArguments());
}

void end_petsc() { PetscFinalize(); }

std::vector<Method> star_forests(SharedExchange exchange, int block) {
  const bool can_be =
      exchange->stores_as_sent() || (exchange->combine == Combine::sum && exchange->wire_type() == Scalar::f64);
  if (!can_be || !are_stars(*exchange, block)) return {};
  return {method_of<Runner>("PetscSF", std::move(exchange), block)};
}

}  // namespace kplan::bench
