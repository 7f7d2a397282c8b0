// How it works: workloads of two ranks are made for both of them in this process. kplan's kernels are checked by
// carrying a message each way by hand and comparing both ranks' arrays, all else by messages made element by element.
// Then packing at rank 0, and unpacking or reducing there, are measured beside plain loops over the same regions,
// MPI_Pack, and memcpy of the same bytes.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tools/bench/aligned_memory.hpp"
#include "tools/bench/cache_flush.hpp"
#include "tools/bench/commands.hpp"
#include "tools/bench/exchange/packer.hpp"
#include "tools/bench/exchange/region_type.hpp"
#include "tools/bench/kernels/constant_loops.hpp"
#include "tools/bench/kernels/dry_program.hpp"
#include "tools/bench/report.hpp"

namespace kplan::bench {
namespace {

/// Workloads whose kernels are measured.
const std::vector<std::string> chosen_workloads{"halo 64^3, width 1, faces, split y",
                                                "halo 64^3, width 1, faces, split z",
                                                "halo 64^3, width 2, faces, split z",
                                                "weather, 7 arrays, split x (12 B blocks)",
                                                "blocks of 12 B, weather field",
                                                "blocks of 24 B, lattice of SU(3) vectors in f32",
                                                "blocks of 40 B, LU plane",
                                                "blocks of 48 B, lattice of SU(3) vectors in f64",
                                                "blocks of 92 B, columns of a weather field",
                                                "block rows to block columns 2048",
                                                "matrix transpose 2048",
                                                "FFT transpose, pencils, 32^3 complex",
                                                "ghost gather, 100 entries, shuffled",
                                                "ghost gather, 10000 entries, sorted",
                                                "ghost gather, 10000 entries, shuffled",
                                                "ghost gather, 1000000 entries, shuffled",
                                                "ghost sum, 10000 entries, shuffled",
                                                "1000 particles, three fields",
                                                "finite elements, 2000 nodes of 3",
                                                "f32 to f64, 100000 each way",
                                                "f32 to f64, 100000 each way, every second",
                                                "sum of ghost rows on arrival",
                                                "sum of ghost columns on arrival"};

/// One workload on both ranks.
struct Pair {
  std::vector<Case> cases;
  std::vector<std::unique_ptr<DryProgram>> programs;
  std::vector<AlignedMemory> messages;  ///< by sender
  Exchange exchange;                    ///< of rank 0, fused

  explicit Pair(const Workload& w) {
    for (int rank = 0; rank < 2; ++rank) cases.push_back(w.make({MPI_COMM_SELF, rank, 2}));
    for (int rank = 0; rank < 2; ++rank) {
      programs.push_back(std::make_unique<DryProgram>(cases, rank));
      messages.emplace_back(programs.back()->bytes_to(1 - rank));
    }
    exchange = fused(*cases[0].exchange);
  }
};

void check(Pair& p, const std::string& name) {
  for (const Case& c : p.cases) c.whole.fill(3);
  for (int rank = 0; rank < 2; ++rank)
    p.programs[static_cast<std::size_t>(rank)]->pack(1 - rank, p.messages[static_cast<std::size_t>(rank)].data());
  for (int rank = 0; rank < 2; ++rank) {
    DryProgram& program = *p.programs[static_cast<std::size_t>(rank)];
    program.move_local();
    program.unpack(1 - rank, p.messages[static_cast<std::size_t>(1 - rank)].data());
    const std::string mistake = p.cases[static_cast<std::size_t>(rank)].whole.difference(3);
    if (!mistake.empty()) throw std::runtime_error(name + ": " + mistake);
  }
}

/// The message of a region, element by element in its order.
std::vector<std::byte> message_of(const Region& region, const Exchange& e) {
  std::vector<std::byte> out;
  for (const Element& element : elements_of(region)) {
    const Array& array = e.arrays[static_cast<std::size_t>(element.array)];
    const std::byte* from = array.data + element.number * static_cast<std::int64_t>(size_of(array.type));
    out.insert(out.end(), from, from + size_of(array.type));
  }
  return out;
}

void check_packing(Pair& p, const std::vector<Candidate>& candidates, const std::string& name) {
  p.cases[0].whole.fill(4);
  const std::vector<std::byte> expected = message_of(p.exchange.sends.at(0).mine, p.exchange);
  const auto message = p.messages[0].bytes();
  for (const Candidate& c : candidates) {
    if (c.name == "kplan") continue;  // whose messages have an order of their own
    std::ranges::fill(message, std::byte{0xff});
    c.run();
    if (!std::ranges::equal(message, expected))
      throw std::runtime_error(name + ", " + c.name + ": the message is wrong");
  }
}

void check_unpacking(Pair& p, const std::vector<Candidate>& candidates, const std::string& name) {
  p.cases[1].whole.fill(5);
  const auto link = std::ranges::find(p.exchange.receives, 1, &Link::peer);
  std::ranges::copy(message_of(link->theirs, *p.cases[1].exchange), p.messages[1].data());
  for (const Candidate& c : candidates) {
    if (c.name == "kplan") continue;
    p.cases[0].whole.fill(5);
    p.programs[0]->move_local();
    c.run();
    const std::string mistake = p.cases[0].whole.difference(5);
    if (!mistake.empty()) throw std::runtime_error(name + ", " + c.name + ": " + mistake);
  }
}

/// What MPI_Pack and MPI_Unpack need.
struct Typed {
  void* base;
  OwnedType type;
  int bytes;
  std::byte* message;
  void pack() const {
    int position = 0;
    MPI_Pack(base, 1, type.get(), message, bytes, &position, MPI_COMM_SELF);
  }
  void unpack() const {
    int position = 0;
    MPI_Unpack(message, bytes, &position, base, 1, type.get(), MPI_COMM_SELF);
  }
};

std::vector<Candidate> packing(Pair& p, ConstantLoops& constant) {
  const Exchange& e = p.exchange;
  const Link& l = e.sends.at(0);
  std::byte* message = p.messages[0].data();
  DryProgram* program = p.programs[0].get();
  std::vector<Candidate> out;
  if (!program->is_in_place(1)) out.push_back({"kplan", [=] { program->pack(1, message); }});
  const auto add = [&](const char* name, Care care) {
    const auto packer = std::make_shared<Packer>(l.mine, e.arrays, e.wire_type(), Combine::assign, care);
    out.push_back({name, [=] { packer->pack(message); }});
  };
  add("loops, sizes at run time", Care::plain);
  add("loops, as experts write them", Care::expert);
  const auto packer = std::make_shared<Packer>(l.mine, e.arrays, e.wire_type(), Combine::assign, Care::plain);
  if (packer->replace(&Loops::pack, [&](const loops::Walk& walk, Scalar place) {
        return constant.find(walk, place, place, Combine::assign);
      }))
    out.push_back({"loops, all constant", [=] { packer->pack(message); }});
  void* base = type_base(e, e.sends);
  const Typed typed{base, region_type(l.mine, e, base), static_cast<int>(p.messages[0].size_bytes()), message};
  out.push_back({"MPI_Pack", [=] { typed.pack(); }});
  return out;
}

std::vector<Candidate> unpacking(Pair& p, ConstantLoops& constant) {
  const Exchange& e = p.exchange;
  const auto l = std::ranges::find(e.receives, 1, &Link::peer);
  std::byte* message = p.messages[1].data();
  DryProgram* program = p.programs[0].get();
  std::vector<Candidate> out{{"kplan", [=] { program->unpack(1, message); }}};
  const auto add = [&](const char* name, Care care) {
    const auto packer = std::make_shared<Packer>(l->mine, e.arrays, e.wire_type(), e.combine, care);
    out.push_back({name, [=] { packer->unpack(message); }});
  };
  add("loops, sizes at run time", Care::plain);
  add("loops, as experts write them", Care::expert);
  const auto packer = std::make_shared<Packer>(l->mine, e.arrays, e.wire_type(), e.combine, Care::plain);
  if (packer->replace(&Loops::unpack, [&](const loops::Walk& walk, Scalar place) {
        return constant.find(walk, e.wire_type(), place, e.combine);
      }))
    out.push_back({"loops, all constant", [=] { packer->unpack(message); }});
  if (!e.stores_as_sent()) return out;
  void* base = type_base(e, e.receives);
  const Typed typed{base, region_type(l->mine, e, base), static_cast<int>(p.messages[1].size_bytes()), message};
  out.push_back({"MPI_Unpack", [=] { typed.unpack(); }});
  return out;
}

/// memcpy of so many bytes from one buffer to another.
Candidate copying(std::size_t bytes) {
  auto memory = std::make_shared<std::pair<AlignedMemory, AlignedMemory>>(AlignedMemory(bytes), AlignedMemory(bytes));
  return {"memcpy (limit)", [memory, bytes] {
            std::memcpy(memory->first.data(), memory->second.data(), bytes);
            asm volatile("" ::: "memory");
          }};
}

std::vector<Result> measure(const Team& self, const Options& options, const std::string& name,
                            std::vector<Candidate> candidates, std::size_t bytes, double seconds, CacheFlush& flush) {
  candidates.push_back(copying(bytes));
  std::erase_if(candidates, [&](const Candidate& c) { return !options.wants_method(c.name); });
  std::vector<Result> rows;
  for (const bool is_cold : {false, true}) {
    Limits limits;
    limits.seconds = seconds / 2;
    const std::vector<Measured> measured =
        sample(self, candidates, limits, is_cold ? std::function<void()>(std::ref(flush)) : nullptr);
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      rows.push_back(
          {name, 1, bytes, is_cold ? "cold" : "warm", candidates[k].name, measured[k], 0, false, Json::object()});
      rows.back().more["gb_per_s"] = static_cast<double>(bytes) / measured[k].us.median / 1000;
    }
  }
  compare(rows);
  return rows;
}

std::string rates(const std::vector<Result>& rows) {
  std::string out = "  GB/s, warm and cold: ";
  const std::size_t half = rows.size() / 2;
  for (std::size_t k = 0; k < half; ++k)
    out += fmt::format("{}{} {:.1f} {:.1f}", k > 0 ? "; " : "", rows[k].method, rows[k].more["gb_per_s"].get<double>(),
                       rows[k + half].more["gb_per_s"].get<double>());
  return out + "\n";
}

}  // namespace

int kernels(const Team& world, const Options& options) {
  std::vector<Workload> chosen;
  for (Workload& w : all_workloads())
    if (std::ranges::find(chosen_workloads, w.name) != chosen_workloads.end() && options.wants(w.name))
      chosen.push_back(std::move(w));
  if (options.is_list) {
    for (const Workload& w : chosen) say(world, w.name + "\n");
    return 0;
  }
  if (world.rank == 0) {
    const Team self = team_of(MPI_COMM_SELF);
    CacheFlush flush(options.flush_mib ? static_cast<std::size_t>(*options.flush_mib * 1048576) : flush_bytes(self));
    say_where(self, flush.size_bytes());
    const double share =
        options.seconds.value_or(180) / static_cast<double>(std::max<std::size_t>(chosen.size(), 1)) / 2;
    std::vector<Result> results;
    for (const Workload& w : chosen) {
      Pair pair(w);
      check(pair, w.name);
      const bool is_sum = pair.exchange.combine == Combine::sum;
      ConstantLoops constant(w.name);
      std::vector<Candidate> packers = packing(pair, constant), unpackers = unpacking(pair, constant);
      constant.require_all_found();
      check_packing(pair, packers, w.name);
      check_unpacking(pair, unpackers, w.name);
      for (const bool is_pack : {true, false}) {
        const std::string name = (is_pack ? "pack, " : is_sum ? "reduce, " : "unpack, ") + w.name;
        const std::size_t bytes = pair.messages[is_pack ? 0 : 1].size_bytes();
        const std::vector<Result> rows =
            measure(self, options, name, is_pack ? packers : unpackers, bytes, share, flush);
        say(self, table(rows) + rates(rows) + "\n");
        results.insert(results.end(), rows.begin(), rows.end());
      }
    }
    say(self, summary(results));
    write_files(self, options, results,
                {{"warm", ratios_plot(results, "warm")}, {"cold", ratios_plot(results, "cold")}});
  }
  wait_idly(world);
  return 0;
}

}  // namespace kplan::bench
