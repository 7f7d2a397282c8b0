// Dynamic sparse exchange: every run, each rank has letters for other ranks than the run before, and nobody knows who
// sends to it. Eight exchanges made in advance are gone through by turns.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tools/bench/methods/sparse_exchange.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

constexpr std::size_t turns = 8;

/// Up to four targets, others than the rank itself; sometimes none.
Letters letters_of(int rank, int size, std::size_t turn, std::int64_t longest) {
  std::mt19937 random(static_cast<unsigned>(rank * 7001 + static_cast<int>(turn) * 17));
  std::vector<std::int32_t> others;
  for (std::int32_t r = 0; r < size; ++r)
    if (r != rank) others.push_back(r);
  std::shuffle(others.begin(), others.end(), random);
  const auto most = std::min<std::size_t>(4, others.size());
  others.resize(turn == turns - 1 && rank % 2 == 1 ? 0 : 1 + random() % most);
  Letters out;
  out.targets = others;
  std::int32_t first = 0;
  for (std::size_t k = 0; k < others.size(); ++k) {
    out.counts.push_back(
        static_cast<std::int32_t>(longest / 2 + 1 + static_cast<std::int64_t>(random()) % ((longest + 1) / 2)));
    out.counts.back() = std::min(out.counts.back(), static_cast<std::int32_t>(longest));
    out.firsts.push_back(first);
    first += out.counts.back();
  }
  return out;
}

double sent(int rank, std::int64_t k, unsigned seed) {
  return static_cast<double>((rank * 101 + k * 7 + static_cast<std::int64_t>(seed) * 13) % 4093);
}

std::string difference(Mail& mail, unsigned seed) {
  const auto received = mail.received.as<std::int32_t>();
  for (int sender = 0; sender < mail.team.size; ++sender) {
    const Letters l = letters_of(sender, mail.team.size, seed % turns, mail.longest);
    const auto at = std::ranges::find(l.targets, mail.team.rank) - l.targets.begin();
    const bool is_sent = at < std::ssize(l.targets);
    const auto k = static_cast<std::size_t>(at);
    const std::int64_t count = is_sent ? l.counts[k] : 0;
    if (received[static_cast<std::size_t>(sender)] != count)
      return fmt::format("rank {} has {} elements of rank {}, not {}", mail.team.rank,
                         received[static_cast<std::size_t>(sender)], sender, count);
    for (std::int64_t n = 0; n < mail.longest; ++n)
      if (mail.row(sender)[n] != (n < count ? sent(sender, l.firsts[k] + n, seed) : -1))
        return fmt::format("rank {}: element {} of rank {} is wrong", mail.team.rank, n, sender);
  }
  return "";
}

/// What the plan reads at every run, copied from the exchange whose turn it is.
struct Varying {
  std::vector<std::int32_t> targets, counts, firsts;
  explicit Varying(std::size_t most) : targets(most), counts(most), firsts(most) {}
};

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

Method planned(const std::shared_ptr<Mail>& mail) {
  auto varying = std::make_shared<Varying>(4);
  PlanBuilder builder("letters");
  builder.parameter("longest", Scalar::i64).parameter("n_letters", Scalar::i64, Scope::private_, Time::varying);
  builder.buffer("outbox", Scalar::f64, {"4 * longest"}).buffer("inbox", Scalar::f64, {"size", "longest"});
  builder.buffer("received", Scalar::i32, {"size"});
  for (const char* name : {"targets", "counts", "firsts"})
    builder.index_buffer(name, Scalar::i32, {4}, Scope::private_, Time::varying);
  builder.communicate(
      "letters",
      "inbox[from, 0:c]@to <<= outbox[f : f+c]@rank, received[from]@to <<= i32(c)@rank where from = rank, "
      "k in range(n_letters), to = targets[k], c = counts[k], f = firsts[k]");
  const Bindings bindings{{"outbox", mail->outbox.bytes()},      {"inbox", mail->inbox.bytes()},
                          {"received", mail->received.bytes()},  {"targets", bytes_of(varying->targets)},
                          {"counts", bytes_of(varying->counts)}, {"firsts", bytes_of(varying->firsts)}};
  return kplan_method(mail->team, builder.build(), {{"longest", mail->longest}, {"n_letters", 0}}, bindings,
                      [mail, varying](Executable& executable) {
                        const Letters& l = mail->next();
                        mail->clear_received();
                        std::ranges::copy(l.targets, varying->targets.begin());
                        std::ranges::copy(l.counts, varying->counts.begin());
                        std::ranges::copy(l.firsts, varying->firsts.begin());
                        executable.set("n_letters", l.targets.size());
                      });
}

Case make(const Team& team, std::int64_t longest) {
  const auto size = static_cast<std::size_t>(team.size), row = static_cast<std::size_t>(longest);
  auto mail = std::make_shared<Mail>(
      Mail{team, longest, AlignedMemory(32 * row), AlignedMemory(8 * row * size), AlignedMemory(4 * size), {}, 0});
  Case out;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    mail->exchanges.push_back(letters_of(team.rank, team.size, turn, longest));
    const auto& counts = mail->exchanges.back().counts;
    out.peers = out.messages = std::max(out.peers, static_cast<int>(counts.size()));
    out.bytes = std::max(out.bytes, 8 * static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0)));
  }
  out.turns = static_cast<int>(turns);
  out.rewrite = [mail](unsigned seed) {
    const auto outbox = mail->outbox.as<double>();
    for (std::size_t k = 0; k < outbox.size(); ++k)
      outbox[k] = sent(mail->team.rank, static_cast<std::int64_t>(k), seed);
  };
  out.whole.fill = [mail, rewrite = out.rewrite](unsigned seed) {
    mail->turn = seed;
    rewrite(seed);
    std::ranges::fill(mail->inbox.as<double>(), -1.0);
    std::ranges::fill(mail->received.as<std::int32_t>(), -1);
  };
  out.whole.difference = [mail](unsigned seed) { return difference(*mail, seed); };
  out.methods = {planned(mail), nbx(mail), counted_by_alltoall(mail), counted_alltoallv(mail),
                 counted_by_reduce_scatter(mail)};
  out.memory = mail;
  return out;
}

}  // namespace

void add_dynamic(std::vector<Workload>& to) {
  for (const auto& [size, longest] : {std::pair("16 B", 2), {"1 KiB", 128}, {"64 KiB", 8192}})
    to.push_back({fmt::format("dynamic sparse exchange, letters to {}", size), {2, 4, 8}, [longest](const Team& team) {
                    return make(team, longest);
                  }});
}

}  // namespace kplan::bench
