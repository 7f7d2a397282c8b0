// How it works: a list of letters in a varying buffer, each with a target, a length and a place to begin; reductions
// carry slices, elements and numbers of them. Mostly reductions other than assign, since letters often meet.
#include <fmt/format.h>

#include "dice.hpp"
#include "random_plan.hpp"

namespace kplan::test {
namespace {

class LetterDrawing : Dice {
 public:
  explicit LetterDrawing(std::mt19937_64& random) : Dice(random) {}

  RandomPlan draw() {
    plan_.ranks = between(1, 5);
    plan_.data_seed = random_();
    static const std::vector<std::string> types{"f64", "f32", "i32", "i64", "u8", "i16", "u64", "c64", "pair"};
    for (int k = 0; k < 6; ++k) {
      RandomBuffer b;
      b.name = fmt::format("b{}", k);
      b.type = k % 2 == 1 && chance(75) ? plan_.buffers.back().type : one_of(types);
      if (chance(40)) b.shape = {between(5, 9), 12};
      else b.shape = {between(20, 60)};
      if (chance(10)) b.strides = b.shape.size() == 1 ? std::vector<int>{2} : std::vector<int>{14, 1};
      plan_.buffers.push_back(std::move(b));
    }
    if (chance(40))
      for (std::size_t k = 2; k < 6; ++k)
        plan_.buffers[k].shape = plan_.buffers[k % 2].shape, plan_.buffers[k].strides = plan_.buffers[k % 2].strides;
    plan_.buffers.push_back({"moving", chance(50) ? "i64" : "i32", {12}, {}, R"("time": "varying")", false, false});
    plan_.statements.push_back(statement());
    return plan_;
  }

 private:
  RandomStatement statement() {
    RandomStatement s;
    s.is_any_order = false;
    s.is_fresh = chance(4);
    if (chance(15)) s.group = one_of<std::string>({"half", "some", "private_group"});
    s.clauses = {chance(20) ? "from in " + (s.group.empty() ? "world" : s.group) : "from = rank",
                 one_of<std::string>({"k in range(4)", "k in {0 ... mine % 5}", "k in range(moving[11] % 6)",
                                      "k in {5, 2, 0}", "k in {3 ... 0 by -1}"}),
                 one_of<std::string>({"to = moving[k] % size", "to = (moving[k] + upper) % size"}),
                 fmt::format("c = moving[k + {}] % {}", between(0, 5), between(1, 5)),
                 fmt::format("f = (moving[11 - k] + {}) % {}", between(0, 9), between(3, 8))};
    if (chance(30)) s.clauses.push_back(one_of<std::string>({"to != rank", "c > 0", "(k + f) % 2 == 0", "c + f < 7"}));
    has_turns_ = chance(40);
    s.is_pull = is_pull_ = has_turns_ && chance(30);
    if (has_turns_)
      s.clauses.push_back(
          one_of<std::string>({"t in {0 ... c}", "t in range(6)", "t in range(c, f)", "t in range(f)"}));
    if (has_turns_ && chance(15)) s.clauses.push_back("v = moving[t] % 7");
    const int reductions = between(1, 3);
    for (int k = 0; k < reductions; ++k) s.reductions.push_back(reduction(k, s.clauses[0] != "from = rank"));
    return s;
  }

  /// One element of the buffer, or those of a letter.
  std::string reference(const RandomBuffer& b, bool is_slice, const char* row) {
    const std::string chosen = &b == &plan_.buffers[is_pull_ ? 0 : 1] ? "moving[t] % 12" : "t";
    const std::string last = !is_slice && has_turns_ && chance(92)
                                 ? one_of<std::string>({"t", "t", "f + t", "t - c + 6", "2 + t", chosen})
                             : is_slice ? one_of<std::string>({"f : f + c", "0 : c", "f : f + c", "2 : c + 2"})
                                        : one_of<std::string>({"(k + f) % 12", "f", "(3 * k + c + f) % 12"});
    return b.shape.size() == 1 ? fmt::format("{}[{}]", b.name, last)
                               : fmt::format("{}[({}) % {}, {}]", b.name, row, b.shape[0], last);
  }

  RandomReduction reduction(int number, bool is_filtered) {
    // Each mostly to a buffer of its own.
    const RandomBuffer& to = plan_.buffers[static_cast<std::size_t>(chance(85) ? 2 * number : 0)];
    const RandomBuffer& from = plan_.buffers[static_cast<std::size_t>(2 * number + 1)];
    RandomReduction r;
    r.sender = is_filtered ? "from" : "rank";
    r.receiver = "to";
    if (is_pull_) std::swap(r.sender, r.receiver);
    const bool is_number = to.type[0] != 'p' && to.type[0] != 'c' && chance(25),
               is_slice = !is_number && chance(has_turns_ ? 3 : 60);
    const auto alike = [](const RandomBuffer& b, const std::string& other) { return b.name + other.substr(2); };
    const bool is_alike = number > 0 && !is_number && value_[0] == 'b' && chance(40) &&
                          plan_.buffers[0].shape.size() == to.shape.size() &&
                          plan_.buffers[1].shape.size() == from.shape.size();
    r.place = is_alike ? alike(to, place_) : reference(to, is_slice, chance(80) ? "from" : "from + k");
    r.value = is_alike    ? alike(from, value_)
              : is_number ? fmt::format("{}({})", to.type, one_of<std::string>({"c", "k + from", "f * 300 + c", "1"}))
                          : reference(from, is_slice, "k");
    if (number == 0) place_ = r.place, value_ = r.value;
    if (to.type == from.type || is_number) {
      r.op = to.type == "pair" ? one_of<std::string>({"assign", "wider"})
             : chance(25)      ? "assign"
                               : one_of<std::string>({"sum", "sum", "axpy"});
      if (!is_number && to.type != "pair" && chance(10)) r.value = fmt::format("{}({} * 2)", to.type, r.value);
    } else if (to.type == "pair" || from.type == "pair" || from.type[0] == 'c') {
      r.value = from.type == "pair" && to.type != "pair" ? fmt::format("{}({}.n)", to.type, r.value) : "0";
      r.op = "assign";
    } else {
      r.value = fmt::format("{}({})", to.type, r.value);
      r.op = chance(30) ? "assign" : "sum";
    }
    return r;
  }

  RandomPlan plan_;
  bool is_pull_ = false;       ///< letters ask for what they would bring
  bool has_turns_ = false;     ///< a last loop, over elements that mostly lie side by side
  std::string place_, value_;  ///< of the first reduction
};

}  // namespace

RandomPlan draw_letters(std::mt19937_64& random) { return LetterDrawing(random).draw(); }

}  // namespace kplan::test
