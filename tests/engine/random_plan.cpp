#include "random_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dice.hpp"

namespace kplan::test {
namespace {

class Drawing : Dice {
 public:
  explicit Drawing(std::mt19937_64& random) : Dice(random) {}

  RandomPlan draw() {
    plan_.ranks = between(1, 5);
    plan_.data_seed = random_();
    draw_buffers();
    const int statements = chance(25) ? 2 : 1;
    for (int k = 0; k < statements; ++k) plan_.statements.push_back(statement());
    return plan_;
  }

 private:
  void draw_buffers() {
    static const std::vector<std::string> types{"f64", "f64", "f32", "i32",  "i64", "u8",   "i16",  "u32",
                                                "u64", "i8",  "u16", "bool", "c64", "c128", "pair", "located"};
    const int count = between(2, 4);
    for (int k = 0; k < count; ++k) {
      RandomBuffer b;
      b.name = fmt::format("b{}", k);
      b.type = one_of(types);
      if (k > 0 && chance(50)) b.type = plan_.buffers[0].type;
      const int dimensions = chance(5) ? 0 : between(1, 3);
      for (int d = 0; d < dimensions; ++d) b.shape.push_back(between(1, dimensions == 1 ? 40 : 9));
      if (dimensions > 0 && chance(15)) {  // rows with gaps between them
        b.strides.assign(b.shape.size(), 1);
        for (std::size_t d = b.shape.size() - 1; d-- > 0;)
          b.strides[d] = b.strides[d + 1] * b.shape[d + 1] + between(0, 3);
        if (chance(30))
          for (int& s : b.strides) s *= 2;
      }
      plan_.buffers.push_back(std::move(b));
    }
    if (chance(40))
      plan_.buffers.push_back({"counts", "i32", {5}, {}, R"("scope": "uniform", "time": "fixed")", true, true});
    if (chance(30))
      plan_.buffers.push_back({"index", chance(50) ? "i64" : "u8", {12}, {}, R"("time": "fixed")", true, false});
    if (chance(20)) plan_.buffers.push_back({"moving", "i64", {12}, {}, R"("time": "varying")", false, false});
    if (chance(10))
      plan_.buffers.push_back({"shared", "i32", {6}, {}, R"("scope": "uniform", "time": "varying")", true, true});
  }

  bool has(const char* name) const {
    for (const auto& b : plan_.buffers)
      if (b.name == name) return true;
    return false;
  }

  RandomStatement statement() {
    RandomStatement s;
    names_.clear();
    s.is_pull = chance(12);
    s.is_fresh = chance(15);
    std::vector<std::string> senders, receivers;
    draw_ranks(s, senders, receivers);
    draw_elements(s);
    if (chance(15)) draw_varying(s);
    if (chance(6) && !names_.empty()) draw_fault(s);
    if (chance(20)) {
      s.group = one_of<std::string>({"half", "some", "turned", "but_one", "private_group"});
      for (std::string& clause : s.clauses)
        if (clause.ends_with(" in world")) clause = clause.substr(0, clause.size() - 5) + s.group;
    }
    if (chance(10))
      s.clauses.insert(s.clauses.begin() + between(0, static_cast<int>(s.clauses.size())), "t in {0 ... 1}"),
          names_.push_back("t");
    if (chance(12) && names_.size() > 1)
      std::swap(s.clauses[0], s.clauses[static_cast<std::size_t>(between(0, static_cast<int>(s.clauses.size()) - 1))]);
    const int reductions = chance(20) ? between(2, 3) : 1;
    for (int k = 0; k < reductions; ++k) s.reductions.push_back(reduction(one_of(senders), one_of(receivers)));
    // The claim holds where nothing else that is private decides the pattern.
    for (const std::string& clause : s.clauses)
      for (const char* other : {"own", "index", "mine", "moving"})
        if (clause.find(other) != std::string::npos) s.claims_corresponding = false;
    // In any order the bits are the same where the operator is exact.
    static const std::vector<std::string> exact{"min", "max", "band", "bor", "bxor", "land", "lor"};
    s.is_any_order = reductions == 1 && std::ranges::find(exact, s.reductions[0].op) != exact.end() && chance(40);
    return s;
  }

  /// A clause that cannot be evaluated in some environments, perhaps with a filter that leaves them out, before or
  /// after.
  void draw_fault(RandomStatement& s) {
    const std::string of = name();
    const std::vector<std::string> forms{
        fmt::format("w = 12 / ({} - 1)", of), fmt::format("w = ({} * 4611686018427387904) % 7", of),
        has("counts") ? fmt::format("w = counts[{}]", of) : fmt::format("w = 3 % {}", of)};
    const std::string filter =
        one_of<std::string>({of + " > 1", of + " < 2", of + " != 1", of + " >= 0 && " + of + " < 5"});
    const int order = between(0, 2);
    if (order == 0) s.clauses.push_back(filter);
    s.clauses.push_back(one_of(forms));
    names_.push_back("w");
    if (order == 1) s.clauses.push_back(filter);
    if (chance(30)) s.clauses.push_back("w < 6");
  }

  /// Names that change from run to run.
  void draw_varying(RandomStatement& s) {
    std::vector<std::string> forms{"v in {0 ... upper}", "v in {0 ... upper % 3}", "v in {mine % 2 ... 3}",
                                   "v = mine % 4"};
    if (has("moving")) {
      forms.push_back("v in moving[0:3]");
      forms.push_back("v = moving[rank % 12] % 5");
      forms.push_back("v in {0 ... moving[2] % 3}");
    }
    if (has("shared")) {
      forms.push_back("v in shared");
      forms.push_back("v in {0 ... shared[1] % 4}");
    }
    s.clauses.push_back(one_of(forms));
    names_.push_back("v");
    if (chance(20)) s.clauses.push_back("(v + mine) % 2 == 0");
  }

  /// The clauses that decide ranks, and what may stand as sender and receiver.
  void draw_ranks(RandomStatement& s, std::vector<std::string>& senders, std::vector<std::string>& receivers) {
    const std::string self = "rank";
    switch (between(0, 12)) {
      case 12:  // an owner that varies
        s.clauses = {"i in world"};
        names_ = {"i"};
        if (chance(40))
          s.clauses.push_back(one_of<std::string>({"upper % 2 == 0 || i > 0", "(i + upper) % 3 < 2", "upper > 2"}));
        senders = {
            one_of<std::string>({"upper % size", "upper / 2 % size", "(i + upper) % size", "(2 * upper - i) % size"})};
        receivers = {"i", one_of<std::string>({"(upper + 1) % size", "(i - upper) % size", "i * (upper % 2)"})};
        break;
      case 9:
        s.clauses = {has("index") ? "to = index[rank % 12] % size" : "to = own * own % size"};
        names_ = {"to"};
        senders = {s.is_pull ? "to" : self};
        receivers = {s.is_pull ? self : "to"};
        break;
      case 10:
        s.clauses = {"n in range(5)", has("index") ? "to = index[n] % size" : "to = (n * own + 1) % size"};
        names_ = {"n", "to"};
        senders = {s.is_pull ? "to" : self};
        receivers = {s.is_pull ? self : "to"};
        break;
      case 11:
        s.clauses = {has("moving") ? "to = moving[own % 12] % size" : "to = (mine + rank) % size"};
        names_ = {"to"};
        senders = {s.is_pull ? "to" : self};
        receivers = {s.is_pull ? self : "to"};
        break;
      case 0:
        s.clauses = {"i in world", "j in world"};
        names_ = {"i", "j"};
        if (chance(60))
          s.clauses.push_back(one_of<std::string>(
              {"i % 2 == 0", "(i + j) % 2 == 0", "i < j", "i != j", "i == (j + 1) % size", "(i - j) % 3 == 1",
               "i / 2 == j / 2", "i * j < 4 && i >= j - 1", "!(i == j) || i == 0", "abs(i - j) <= 1"}));
        senders = {"j"};
        receivers = {"i"};
        if (chance(10)) senders.push_back("(j + 1) % size");
        break;
      case 1:
        s.clauses = {fmt::format("q = (rank + {}) % size", between(-2, 3))};
        names_ = {"q"};
        senders = {s.is_pull ? "q" : self};
        receivers = {s.is_pull ? self : "q"};
        break;
      case 2:
        s.clauses = {"s in world"};
        names_ = {"s"};
        senders = {"s"};
        receivers = {fmt::format("{} % size", between(0, 7)), "size - 1"};
        break;
      case 3:
        s.clauses = {"d in {-1 ... 1}"};
        names_ = {"d"};
        if (chance(50)) s.clauses.push_back("d != 0");
        senders = {s.is_pull ? "(rank + d) % size" : self};
        receivers = {s.is_pull ? self : "(rank + d) % size"};
        break;
      case 4:
        s.clauses = {"d in {-1, 1}", "rank + d >= 0 && rank + d < size"};
        names_ = {"d"};
        senders = {s.is_pull ? "rank + d" : self};
        receivers = {s.is_pull ? self : "rank + d"};
        break;
      case 5:
        s.clauses = {"g in {0 ... 23}", fmt::format("s = g * size / 24"),
                     fmt::format("r = {}", one_of<std::string>({"g % size", "(g / 2) % size", "(23 - g) * size / 24",
                                                                "g / 3 % size"}))};
        names_ = {"g", "s", "r"};
        senders = {"s"};
        receivers = {"r"};
        break;
      case 6:
        s.clauses = {"i in world"};
        names_ = {"i"};
        senders = {"0", "i"};
        receivers = {"i", "(i * 2 + 1) % size", "size - 1 - i"};
        break;
      case 7:
        s.clauses = {"r in world", "s in {r ... size - 1}"};
        names_ = {"r", "s"};
        if (chance(30)) s.clauses.push_back("(s % 2) == (r % 2)");
        senders = {"s"};
        receivers = {"r"};
        break;
      default:
        if (has("counts")) {
          s.clauses = {"m in counts[1:4]", "s in world"};
          names_ = {"m", "s"};
          senders = {"s"};
          receivers = {"m % size"};
        } else {
          s.clauses = {"s in range(0, size, 2)"};
          names_ = {"s"};
          senders = {"s"};
          receivers = {"(s + 1) % size", "s"};
        }
    }
  }

  void draw_elements(RandomStatement& s) {
    const int count = chance(25) ? 0 : chance(70) ? 1 : 2;
    for (int k = 0; k < count; ++k) {
      const std::string name = k == 0 ? "k" : "l";
      switch (between(0, 11)) {
        case 7: s.clauses.push_back(fmt::format("{} in {{0 ... own % 4}}", name)); break;
        case 8:
          s.clauses.push_back(fmt::format("{} in {{0 ... {}}}", name, between(3, 9)));
          s.clauses.push_back(fmt::format("({} + own) % 3 == 0", name));
          break;
        case 9:
          s.clauses.push_back(has("index") ? fmt::format("{} in index[{} : 7]", name, between(0, 6))
                                           : fmt::format("{} in range(own % 3)", name));
          break;
        case 10:
          s.clauses.push_back(fmt::format("{} in {{0 ... same}}", name));
          s.claims_corresponding = k == 0 && chance(60);
          break;
        case 0: s.clauses.push_back(fmt::format("{} in {{0 ... {}}}", name, between(0, 11))); break;
        case 1:
          s.clauses.push_back(
              fmt::format("{} in range({}, {}, {})", name, between(0, 3), between(3, 14), between(1, 3)));
          break;
        case 2:
          s.clauses.push_back(fmt::format("{} in {{{} ... 0 by -{}}}", name, between(2, 9), between(1, 2)));
          break;
        case 3: s.clauses.push_back(fmt::format("{} in {{3, 1, 4}}", name)); break;
        case 4:
          s.clauses.push_back(fmt::format("{} in {{0 ... {}}}", name, between(4, 11)));
          s.clauses.push_back(fmt::format("{} % {} == {}", name, between(2, 3), between(0, 1)));
          break;
        case 5:
          s.clauses.push_back(names_.empty() || k > 0 ? fmt::format("{} in range(4)", name)
                                                      : fmt::format("{} in {{0 ... {} % 4}}", name, names_[0]));
          break;
        default: s.clauses.push_back(fmt::format("{} in range({})", name, between(1, 9)));
      }
      names_.push_back(name);
    }
  }

  std::string name() { return names_.empty() ? std::to_string(between(0, 3)) : one_of(names_); }

  /// An index below `extent`, or nearly always so.
  std::string index(int extent) {
    switch (between(0, 12)) {
      case 12:
        return chance(80) ? fmt::format("(upper * {} + {}) % {}", between(1, 3), between(0, 7), extent) : "upper";
      case 10: return fmt::format("(own + {}) % {}", name(), extent);
      case 11:
        if (has("moving") && chance(70)) return fmt::format("moving[{} % 12] % {}", name(), extent);
        return has("moving") ? fmt::format("(moving[3] + {}) % {}", name(), extent)
                             : fmt::format("(upper + {}) % {}", name(), extent);
      case 0: return std::to_string(between(0, extent - 1));
      case 1: return fmt::format("({} * {} + {}) % {}", name(), between(1, 5), between(0, 7), extent);
      case 2: return fmt::format("({} + {}) % {}", name(), name(), extent);
      case 3: return fmt::format("({} / {} + {}) % {}", name(), between(1, 3), between(0, 4), extent);
      case 4: return fmt::format("min({}, {})", name(), extent - 1) + (chance(50) ? "" : " * 1");
      case 5:
        return has("index") ? fmt::format("index[{} % 12] % {}", name(), extent) : fmt::format("rank % {}", extent);
      case 6: return fmt::format("{} < {} ? {} : 0", name(), extent, name());  // perhaps outside
      default: return fmt::format("({} + {}) % {}", name(), between(0, extent), extent);
    }
  }

  std::string slice(int extent, int length) {
    const int step = length > 1 && (length - 1) * 2 < extent && chance(30) ? 2 : 1;
    const int reach = (length - 1) * step + 1;
    const int lo = between(0, extent - reach);
    if (chance(20) && step == 1 && extent > length)
      return fmt::format("{0} % {1} : {0} % {1} + {2}", name(), extent - length + 1, length);
    if (chance(15) && step == 1)
      return fmt::format("(upper + {0}) % {1} : (upper + {0}) % {1} + {2}", lo, extent - length + 1, length);
    if (length == extent && step == 1 && chance(50)) return ":";
    return step == 1 ? fmt::format("{} : {}", lo, lo + length) : fmt::format("{} : {} : {}", lo, lo + reach, step);
  }

  /// A reference to one element, or to `length` of them in a row.
  std::string reference(const RandomBuffer& b, int length) {
    if (b.shape.empty()) return b.name;
    std::string out = b.name + "[";
    bool is_sliced = length < 0;
    const std::size_t sliced = static_cast<std::size_t>(between(0, static_cast<int>(b.shape.size()) - 1));
    for (std::size_t d = 0; d < b.shape.size(); ++d) {
      if (d) out += ", ";
      if (!is_sliced && d == sliced && length > 0 && length <= b.shape[d])
        out += slice(b.shape[d], length), is_sliced = true;
      else out += index(b.shape[d]);
    }
    return out + "]";
  }

  std::vector<const RandomBuffer*> data_buffers() const {
    std::vector<const RandomBuffer*> out;
    for (const auto& b : plan_.buffers)
      if (!b.is_fixed) out.push_back(&b);
    return out;
  }

  static bool is_record(const std::string& type) { return type == "pair" || type == "located"; }

  RandomReduction reduction(const std::string& sender, const std::string& receiver) {
    RandomReduction r;
    r.sender = sender;
    r.receiver = receiver;
    const auto buffers = data_buffers();
    const RandomBuffer& to = *one_of(buffers);
    const int length =
        chance(30) && !to.shape.empty() ? between(1, *std::max_element(to.shape.begin(), to.shape.end())) : 0;
    r.place = reference(to, length);
    std::vector<const RandomBuffer*> alike;
    for (const RandomBuffer* b : buffers)
      if (b->type == to.type) alike.push_back(b);
    const RandomBuffer& from = *one_of(alike);
    const bool fits = length == 0 || std::ranges::any_of(from.shape, [&](int e) { return e >= length; });
    r.value = reference(from, fits ? length : 0);
    if (!fits && chance(90)) r.place = reference(to, 0);
    r.op = chance(25) ? "assign" : one_of(operators(to.type));
    std::string type = to.type;
    if (to.type == "pair" && chance(40)) {
      r.place += ".x";
      r.value += ".x";
      type = "f32";
      r.op = chance(50) ? "assign" : "sum";
    }
    if (!is_record(type) && chance(30)) r.value = expression(r.value, type);
    // Assigns that meet are errors; a sender's own row makes them rare.
    if (r.op == "assign" && to.shape.size() > 1 && to.shape[0] >= plan_.ranks && length == 0 && chance(60) &&
        !is_record(to.type))
      r.place = to.name + "[" + fmt::format("({}) % {}", sender == "rank" ? name() : sender, to.shape[0]) + ", " +
                rest_of(to) + "]";
    return r;
  }

  std::string rest_of(const RandomBuffer& b) {
    std::string out;
    for (std::size_t d = 1; d < b.shape.size(); ++d) out += (d > 1 ? ", " : "") + index(b.shape[d]);
    return out;
  }

  std::vector<std::string> operators(const std::string& type) {
    if (type == "pair") return {"wider"};
    if (type == "located") return {"minloc", "maxloc", "nearer"};
    if (type == "bool") return {"land", "lor", "band", "bor", "bxor", "min", "max"};
    if (type[0] == 'c') return {"sum", "prod", "axpy"};
    if (type[0] == 'f') return {"sum", "prod", "min", "max", "axpy", "mean", "land"};
    return {"sum", "prod", "min", "max", "band", "bor", "bxor", "axpy", "lor"};
  }

  std::string expression(const std::string& e, const std::string& type) {
    if (type == "bool") return chance(50) ? "!" + e : fmt::format("({} || {} % 2 == 0)", e, name());
    std::vector<std::string> forms{fmt::format("{0}({1} * {2})", type, e, between(2, 5)),
                                   fmt::format("{0}({1} + {2})", type, e, type[0] == 'c' ? "1" : name()),
                                   fmt::format("{0}(-{1})", type, e), fmt::format("{0}(alpha)", type),
                                   fmt::format("{0}({1} - {1} * 2)", type, e)};
    if (type[0] != 'c') {
      forms.push_back(fmt::format("{0}({1} > 3 ? {1} : {2})", type, e, between(0, 9)));
      forms.push_back(fmt::format("{0}(clamp({1}, 1, 100))", type, e));
      forms.push_back(fmt::format("{0}(f64({1}) * alpha)", type, e));
      forms.push_back(fmt::format("{0}(rank + own)", type));
    }
    if (type[0] == 'i' || type[0] == 'u') {
      forms.push_back(fmt::format("{0}({1} / {2})", type, e, between(1, 4)));
      forms.push_back(fmt::format("{0}({1} % {2})", type, e, between(2, 9)));
      forms.push_back(fmt::format("{0}(shr({1}, {2}))", type, e, between(0, 3)));
      forms.push_back(fmt::format("{0}({1} != 0 ? 100 / {1} : 0)", type, e));
    }
    return one_of(forms);
  }

  RandomPlan plan_;
  std::vector<std::string> names_;
};

std::string joined(const std::vector<int>& list) { return fmt::format("{}", fmt::join(list, ", ")); }

}  // namespace

std::string RandomPlan::to_json() const {
  std::string out = R"json({"kplan": 1, "name": "random",
 "types": {"pair": {"fields": [{"name": "x", "type": "f32"}, {"name": "n", "type": "i32"}]},
           "located": {"fields": [{"name": "value", "type": "f64"}, {"name": "index", "type": "i32"}]}},
 "parameters": {"alpha": {"type": "f64", "time": "varying", "default": 1.5}, "own": {"type": "i64", "scope": "private", "default": 1},
                "same": {"type": "i64", "scope": "private", "default": 3}, "upper": {"type": "i64", "time": "varying", "default": 2},
                "mine": {"type": "i64", "scope": "private", "time": "varying", "default": 1}},
 "groups": {"half": {"color": "rank % 2", "key": "0 - rank"}, "some": {"color": "rank == 1 ? 0 - 1 : 3"},
            "turned": {"color": "0", "key": "0 - rank"}, "but_one": {"color": "rank == 1 ? 0 - 1 : 0", "key": "0 - rank"},
            "private_group": {"color": "own * own % 2", "key": "own % 3"}},
 "operators": {"axpy": {"expression": "left + 2 * right"}, "mean": {"expression": "(left + right) / 2"},
               "wider": {"expression": {"x": "max(left.x, right.x)", "n": "left.n + right.n"}},
               "nearer": {"expression": "right.value < left.value ? right : left"}},
 "buffers": {)json";
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    const RandomBuffer& b = buffers[k];
    out += fmt::format("{}\n  \"{}\": {{\"type\": \"{}\", \"shape\": [{}]{}{}}}", k ? "," : "", b.name, b.type,
                       joined(b.shape), b.strides.empty() ? "" : fmt::format(", \"strides\": [{}]", joined(b.strides)),
                       b.marks.empty() ? "" : ", " + b.marks);
  }
  out += "},\n \"statements\": [";
  for (std::size_t k = 0; k < statements.size(); ++k) {
    const RandomStatement& s = statements[k];
    std::string text;
    for (const RandomReduction& r : s.reductions)
      text +=
          (text.empty() ? "" : ", ") + fmt::format("{}@{} {} {}@{}", r.place, r.receiver,
                                                   r.op == "assign" ? "<<=" : "<< " + r.op + " <<", r.value, r.sender);
    for (std::size_t c = 0; c < s.clauses.size(); ++c) text += (c ? ", " : " where ") + s.clauses[c];
    out += fmt::format("{}\n  {{\"communicate\": \"{}\"{}{}{}{}{}}}", k ? "," : "", text,
                       s.group.empty() ? "" : fmt::format(", \"in\": \"{}\"", s.group),
                       s.is_pull ? ", \"direction\": \"pull\"" : "", s.is_fresh ? ", \"fresh\": true" : "",
                       s.claims_corresponding ? ", \"knowledge\": \"corresponding\"" : "",
                       s.is_any_order ? ", \"order\": \"any\"" : "");
  }
  return out + "]}";
}

RandomPlan draw_plan(std::mt19937_64& random) {
  if (random() % 8 == 0) return draw_letters(random);
  return Drawing(random).draw();
}

}  // namespace kplan::test
